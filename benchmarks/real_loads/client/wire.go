package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Types of commands; the field of a command's body in BaseCommand has the same number.
const (
	connect, connected, subscribe, producer, send, receipt, message, ack, flow = 2, 3, 4, 5, 6, 7, 9, 10, 11
	success, errorAnswer, producerSuccess, ping, pong, lookup, lookupAnswer    = 13, 14, 17, 18, 19, 23, 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// body is the body of a command.
type body []byte

func (b body) number(field protowire.Number, value uint64) body {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}

func (b body) text(field protowire.Number, value string) body {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func (b body) nested(field protowire.Number, value body) body { return b.text(field, string(value)) }

// field returns the last value of a field: a number, or bytes.
func field(from []byte, wanted protowire.Number) (number uint64, bytes []byte) {
	for len(from) > 0 {
		at, kind, length := protowire.ConsumeTag(from)
		if length < 0 {
			return
		}
		from = from[length:]
		length = protowire.ConsumeFieldValue(at, kind, from)
		if length < 0 {
			return
		}
		if at == wanted && kind == protowire.VarintType {
			number, _ = protowire.ConsumeVarint(from)
		} else if at == wanted && kind == protowire.BytesType {
			bytes, _ = protowire.ConsumeBytes(from)
		}
		from = from[length:]
	}
	return
}

func frameOf(kind int, of body, section []byte) []byte {
	command := body{}.number(1, uint64(kind)).nested(protowire.Number(kind), of)
	made := binary.BigEndian.AppendUint32(nil, uint32(4+len(command)+len(section)))
	made = binary.BigEndian.AppendUint32(made, uint32(len(command)))
	return append(append(made, command...), section...)
}

// sendFrame is a SEND of one message.
func sendFrame(id, sequence uint64, payload []byte) []byte {
	metadata := body{}.text(1, "real-loads").number(2, sequence).number(3, uint64(time.Now().UnixMilli()))
	rest := binary.BigEndian.AppendUint32(nil, uint32(len(metadata)))
	rest = append(append(rest, metadata...), payload...)
	section := binary.BigEndian.AppendUint32([]byte{0x0e, 0x01}, crc32.Checksum(rest, castagnoli))
	return frameOf(send, body{}.number(1, id).number(2, sequence).number(3, 1), append(section, rest...))
}

// line is one connection that is connected; any goroutine may write, one reads.
type line struct {
	net.Conn
	reader *bufio.Reader
	lock   sync.Mutex
}

// answer is one command from the broker, and what follows it in its frame.
type answer struct {
	kind int
	body []byte
	rest []byte
}

func address() string {
	_, found, _ := strings.Cut(*url, "://")
	return found
}

// dialled connects, over TLS where certificates are given, and waits for CONNECTED.
func dialled(readBytes int) (*line, error) {
	dialer := net.Dialer{Timeout: 30 * time.Second}
	var made net.Conn
	var err error
	if *ca == "" {
		made, err = dialer.Dial("tcp", address())
	} else {
		made, err = tls.DialWithDialer(&dialer, "tcp", address(), trusted())
	}
	if err != nil {
		return nil, err
	}
	of := &line{Conn: made, reader: bufio.NewReaderSize(made, readBytes)}
	if _, err = of.ask(connect, body{}.text(1, "real-loads").number(4, 19), connected); err != nil {
		made.Close()
		return nil, err
	}
	return of, nil
}

var trusted = sync.OnceValue(func() *tls.Config {
	pool, pem := x509.NewCertPool(), must(os.ReadFile(*ca))
	pool.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: pool}
})

func must[T any](value T, err error) T {
	fail("system", err)
	return value
}

func (l *line) write(data []byte) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	_, err := l.Write(data)
	return err
}

// next is the next command that is no PING.
func (l *line) next() (answer, error) {
	for {
		var head [8]byte
		if _, err := io.ReadFull(l.reader, head[:]); err != nil {
			return answer{}, err
		}
		rest := make([]byte, binary.BigEndian.Uint32(head[:])-4)
		if _, err := io.ReadFull(l.reader, rest); err != nil {
			return answer{}, err
		}
		length := binary.BigEndian.Uint32(head[4:])
		kind, _ := field(rest[:length], 1)
		if kind == ping {
			go l.write(frameOf(pong, nil, nil)) // whoever reads must not block in a write
			continue
		}
		_, of := field(rest[:length], protowire.Number(kind))
		return answer{int(kind), of, rest[length:]}, nil
	}
}

func (l *line) ask(kind int, of body, wanted int) ([]byte, error) {
	if err := l.write(frameOf(kind, of, nil)); err != nil {
		return nil, err
	}
	return l.expect(wanted)
}

func (l *line) expect(wanted int) ([]byte, error) {
	got, err := l.next()
	if err == nil && got.kind != wanted {
		err = fmt.Errorf("command %d instead of %d: %q", got.kind, wanted, got.body)
	}
	return got.body, err
}

// produceOn looks the topic up and makes a producer, as a client does.
func (l *line) produceOn(name string, id uint64) error {
	if _, err := l.ask(lookup, body{}.text(1, name).number(2, 1).number(3, 0), lookupAnswer); err != nil {
		return err
	}
	_, err := l.ask(producer, body{}.text(1, name).number(2, id).number(3, 2), producerSuccess)
	return err
}
