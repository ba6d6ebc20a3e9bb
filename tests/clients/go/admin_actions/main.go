// Everyday actions of an operator through Apache's Go admin package, unmodified, each checked by its effect: read in another way, or
// by what a client can do then. One JSON line an action. The server is at PULSAR_TEST_URL and PULSAR_TEST_WEB_URL.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	plog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/config"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
	"github.com/sirupsen/logrus"
)

const wait = 15 * time.Second

type operator struct {
	admin  admin.Client
	client pulsar.Client
	web    string
	tenant string
	failed bool
}

type outcome struct {
	Area   string `json:"area"`
	Action string `json:"action"`
	OK     bool   `json:"ok"`
	Error  string `json:"error,omitempty"`
}

// act does one thing and then looks for its effect.
func (o *operator) act(area, action string, do func() error, effect func() error) {
	err := do()
	if err == nil && effect != nil {
		err = effect()
		if err != nil {
			err = fmt.Errorf("effect: %w", err)
		}
	}
	line := outcome{Area: area, Action: action, OK: err == nil}
	if err != nil {
		line.Error, o.failed = err.Error(), true
	}
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

// refused is an action that the server has to turn down with this status and a reason that names the thing.
func (o *operator) refused(area, action string, status int, reason string, do func() error) {
	o.act(area, action, func() error {
		err := do()
		if err == nil {
			return fmt.Errorf("was not refused")
		}
		if !strings.Contains(err.Error(), fmt.Sprintf("code: %d", status)) || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("refused otherwise: %w", err)
		}
		return nil
	}, nil)
}

func same(got any, want any, err error) error {
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %v, expected %v", got, want)
	}
	return nil
}

// soon tries again until it holds: what others do meanwhile takes a moment.
func soon(holds func() error) error {
	var err error
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = holds(); err == nil {
			return nil
		}
	}
	return err
}

// raw reads a path below /admin/v2 without the package that is tested.
func (o *operator) raw(path string) (any, error) {
	answer, err := http.Get(o.web + "/admin/v2" + path)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		return nil, fmt.Errorf("%d %s", answer.StatusCode, body)
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return string(body), nil
	}
	return value, nil
}

// member takes a value out of nested objects; nil where there is none.
func member(value any, names ...string) any {
	for _, name := range names {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// shows tells whether a raw path has this value at these members.
func (o *operator) shows(path string, want any, names ...string) func() error {
	return func() error {
		value, err := o.raw(path)
		return same(member(value, names...), plain(want), err)
	}
}

// plain is what JSON makes of a value.
func plain(value any) any {
	text, _ := json.Marshal(value)
	var found any
	_ = json.Unmarshal(text, &found)
	return found
}

func (o *operator) topic(name string) utils.TopicName {
	found, err := utils.GetTopicName("persistent://" + o.tenant + "/ns/" + name)
	if err != nil {
		panic(err)
	}
	return *found
}

func (o *operator) namespace() utils.NameSpaceName {
	found, err := utils.GetNameSpaceName(o.tenant, "ns")
	if err != nil {
		panic(err)
	}
	return *found
}

func main() {
	quiet := logrus.New()
	quiet.SetLevel(logrus.PanicLevel)
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: os.Getenv("PULSAR_TEST_URL"), Logger: plog.NewLoggerWithLogrus(quiet), OperationTimeout: wait,
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	web := os.Getenv("PULSAR_TEST_WEB_URL")
	found, err := admin.New(&config.Config{WebServiceURL: web})
	if err != nil {
		panic(err)
	}
	o := &operator{admin: found, client: client, web: web, tenant: fmt.Sprintf("go-%d", time.Now().UnixNano())}
	o.clustersAndTenants()
	o.brokers()
	o.namespaces()
	o.namespacePolicies()
	o.topics()
	o.subscriptions()
	o.topicPolicies()
	o.end()
	if o.failed {
		os.Exit(1)
	}
}
