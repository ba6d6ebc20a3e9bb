// Evaluates PromQL over scraped texts with Prometheus's own engine, and checks rule files with its parser.
//
// stdin: {"scrapes": [{"at_ms", "labels", "text"}], "queries": ["..."], "at_ms": n, "rules": ["path"]}.
// stdout: {"results": [{"series": n, "error": ""}], "rule_errors": ["..."]}; errors of reading a scrape end the program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

type scrape struct {
	AtMs   int64             `json:"at_ms"`
	Labels map[string]string `json:"labels"`
	Text   string            `json:"text"`
}

type question struct {
	Scrapes []scrape `json:"scrapes"`
	Queries []string `json:"queries"`
	AtMs    int64    `json:"at_ms"`
	Rules   []string `json:"rules"`
}

type result struct {
	Series int    `json:"series"`
	Error  string `json:"error"`
}

type answer struct {
	Results    []result `json:"results"`
	RuleErrors []string `json:"rule_errors"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	db := &memory{series: map[string]*series{}}
	for _, one := range asked.Scrapes {
		if err := db.load(one); err != nil {
			return fmt.Errorf("the scrape of %v: %w", one.Labels, err)
		}
	}
	told := answer{Results: make([]result, len(asked.Queries)), RuleErrors: []string{}}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true})
	for index, query := range asked.Queries {
		told.Results[index] = evaluate(engine, db, query, asked.AtMs)
	}
	for _, path := range asked.Rules {
		_, failures := rulefmt.ParseFile(path, false)
		for _, failure := range failures {
			told.RuleErrors = append(told.RuleErrors, failure.Error())
		}
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

func (db *memory) load(one scrape) error {
	reader, err := textparse.New([]byte(one.Text), "text/plain; version=0.0.4", "", false, false, false, labels.NewSymbolTable())
	if err != nil {
		return err
	}
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var found labels.Labels
		_, _, value := reader.Series()
		reader.Labels(&found)
		all := labels.NewBuilder(found)
		for name, value := range one.Labels {
			all.Set(name, value)
		}
		if err := db.add(all.Labels(), sample{one.AtMs, value}); err != nil {
			return err
		}
	}
}

// A result that is NaN alone is no data: a panel would stay empty.
func evaluate(engine *promql.Engine, db *memory, query string, atMs int64) result {
	asked, err := engine.NewInstantQuery(context.Background(), db, nil, query, time.UnixMilli(atMs))
	if err != nil {
		return result{Error: err.Error()}
	}
	defer asked.Close()
	found := asked.Exec(context.Background())
	if found.Err != nil {
		return result{Error: found.Err.Error()}
	}
	switch value := found.Value.(type) {
	case promql.Vector:
		count := 0
		for _, sample := range value {
			if !math.IsNaN(sample.F) {
				count++
			}
		}
		return result{Series: count}
	case promql.Matrix:
		return result{Series: len(value)}
	case promql.Scalar, promql.String:
		return result{Series: 1}
	case parser.Value:
		return result{Error: "unknown kind of value: " + string(value.Type())}
	}
	return result{Error: "no value"}
}
