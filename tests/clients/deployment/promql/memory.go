package main

import (
	"context"
	"fmt"
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// memory is a storage.Queryable over what was scraped: samples of a series in the order of their times.
type memory struct{ series map[string]*series }

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// sample is a chunks.Sample of a plain number.
type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// add refuses a series that one scrape tells twice, as Prometheus does.
func (db *memory) add(found labels.Labels, one sample) error {
	key := found.String()
	known := db.series[key]
	if known == nil {
		known = &series{labels: found}
		db.series[key] = known
	}
	if count := len(known.samples); count > 0 && known.samples[count-1].T() >= one.t {
		return fmt.Errorf("%s: told twice, or not in the order of time", key)
	}
	known.samples = append(known.samples, one)
	return nil
}

func (db *memory) Querier(_, _ int64) (storage.Querier, error) { return db, nil }

func (db *memory) Close() error { return nil }

func (db *memory) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{}
	for _, one := range db.series {
		if matches(one.labels, matchers) {
			found.all = append(found.all, storage.NewListSeries(one.labels, one.samples))
		}
	}
	sort.Slice(found.all, func(i, j int) bool { return labels.Compare(found.all[i].Labels(), found.all[j].Labels()) < 0 })
	return found
}

func matches(found labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(found.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

func (db *memory) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (db *memory) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

type seriesSet struct {
	all  []storage.Series
	next int
}

func (s *seriesSet) Next() bool {
	s.next++
	return s.next <= len(s.all)
}

func (s *seriesSet) At() storage.Series                { return s.all[s.next-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
