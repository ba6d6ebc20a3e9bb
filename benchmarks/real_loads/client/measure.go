package main

import (
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// use is what processes have used: CPU seconds so far, megabytes now.
type use struct{ cpu, resident float64 }

func useOf(processes string) (all use) {
	for _, pid := range strings.Split(processes, ",") {
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && pid != "" {
			fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
			user, _ := strconv.ParseFloat(fields[11], 64)
			system, _ := strconv.ParseFloat(fields[12], 64)
			pages, _ := strconv.ParseFloat(fields[21], 64)
			all.cpu += (user + system) / 100
			all.resident += pages * float64(os.Getpagesize()) / 1e6
		}
	}
	return all
}

// waits are latencies; a run has some hundred thousand at most, so that all of them are kept.
type waits struct {
	lock sync.Mutex
	all  []time.Duration
}

func (w *waits) add(waited time.Duration) {
	w.lock.Lock()
	w.all = append(w.all, waited)
	w.lock.Unlock()
}

func (w *waits) told() row {
	w.lock.Lock()
	defer w.lock.Unlock()
	if len(w.all) == 0 {
		return row{"n": 0}
	}
	slices.Sort(w.all)
	at := func(share float64) float64 {
		return rounded(float64(w.all[int(share*float64(len(w.all)-1))].Microseconds()) / 1000)
	}
	return row{"n": len(w.all), "p50_ms": at(.5), "p99_ms": at(.99), "max_ms": at(1)}
}

// meter counts and times what happens between begin and end.
type meter struct {
	on                        atomic.Bool
	published, received, lost atomic.Int64
	publishing, endToEnd      waits
	began                     time.Time
	before                    use
}

func (m *meter) begin() { m.began, m.before = time.Now(), useOf(*pids); m.on.Store(true) }

// receipt counts one publish that began at `at`.
func (m *meter) receipt(at time.Time, err error) {
	if err != nil {
		m.lost.Add(1)
	} else if m.on.Load() {
		m.published.Add(1)
		m.publishing.add(time.Since(at))
	}
}

// delivery counts one message, which bears the time of its publish.
func (m *meter) delivery(payload []byte) {
	if m.on.Load() {
		m.received.Add(1)
		m.endToEnd.add(time.Since(stampOf(payload)))
	}
}

// end is the row of the time since begin; `each` is what the CPU is divided by.
func (m *meter) end(each func(*meter) int64) row {
	m.on.Store(false)
	seconds, after := time.Since(m.began).Seconds(), useOf(*pids)
	used := after.cpu - m.before.cpu
	told := row{
		"seconds": rounded(seconds), "published": m.published.Load(), "received": m.received.Load(), "errors": m.lost.Load(),
		"msgs_s": rounded(float64(m.published.Load()) / seconds), "received_s": rounded(float64(m.received.Load()) / seconds),
		"server_cpu_s": rounded(used), "server_cores": rounded(used / seconds), "server_rss_MB": rounded(after.resident),
		"publish": m.publishing.told(), "e2e": m.endToEnd.told(),
	}
	if count := each(m); count > 0 {
		told["server_cpu_s_per_M"] = rounded(used / float64(count) * 1e6)
	}
	return told
}

func ofPublished(m *meter) int64 { return m.published.Load() }
func ofReceived(m *meter) int64  { return m.received.Load() }

func rounded(value float64) float64 { return float64(int64(value*1000+.5)) / 1000 }

// stamped is a message that bears the time of its publish.
func stamped(bytes int) []byte {
	made := make([]byte, max(bytes, 8))
	binary.BigEndian.PutUint64(made, uint64(time.Now().UnixNano()))
	return made
}

func stampOf(payload []byte) time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(payload))) }

// ticks calls act so often a second, until then; with no rate as often as it returns.
func ticks(until time.Time, act func()) {
	began := time.Now()
	for i := 0; time.Now().Before(until); i++ {
		if *rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(i) / *rate * 1e9))))
		}
		act()
	}
}
