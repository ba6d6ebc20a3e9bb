package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

func (o *operator) path(topic string) string {
	return "/persistent/" + o.tenant + "/ns/" + topic
}

func (o *operator) producer(topic string) (pulsar.Producer, error) {
	return o.client.CreateProducer(pulsar.ProducerOptions{Topic: "persistent://" + o.tenant + "/ns/" + topic, DisableBatching: true})
}

func (o *operator) consumer(topic, subscription string, kind pulsar.SubscriptionType) (pulsar.Consumer, error) {
	return o.client.Subscribe(pulsar.ConsumerOptions{
		Topic: "persistent://" + o.tenant + "/ns/" + topic, SubscriptionName: subscription, Type: kind,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
}

// cannotProduce is nil when a producer is refused in these words.
func (o *operator) cannotProduce(topic, why string) error {
	producer, err := o.producer(topic)
	if err == nil {
		producer.Close()
		return fmt.Errorf("a producer was let in")
	}
	if !strings.Contains(err.Error(), why) {
		return fmt.Errorf("refused otherwise: %w", err)
	}
	return nil
}

func (o *operator) publish(topic string, first, count int) error {
	producer, err := o.producer(topic)
	if err != nil {
		return err
	}
	defer producer.Close()
	for number := first; number < first+count; number++ {
		message := &pulsar.ProducerMessage{Payload: []byte(fmt.Sprintf("m%d", number))}
		if _, err := producer.Send(context.Background(), message); err != nil {
			return err
		}
	}
	return nil
}

// next is the payload of the next message of a subscription, acknowledged.
func (o *operator) next(topic, subscription string) (string, error) {
	consumer, err := o.consumer(topic, subscription, pulsar.Exclusive)
	if err != nil {
		return "", err
	}
	defer consumer.Close()
	bound, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	message, err := consumer.Receive(bound)
	if err != nil {
		return "", err
	}
	return string(message.Payload()), consumer.Ack(message)
}

func (o *operator) topics() {
	const area = "topics"
	topics := o.admin.Topics()
	t, p, name := o.topic("t"), o.topic("p"), "persistent://"+o.tenant+"/ns/t"
	o.act(area, "create", func() error { return topics.Create(t, 0) }, func() error {
		found, err := o.raw("/namespaces/" + o.tenant + "/ns/topics")
		listed, _ := found.([]any)
		return same(slices.Contains(listed, any(name)), true, err)
	})
	o.refused(area, "create it again", 409, "This topic already exists", func() error { return topics.Create(t, 0) })
	o.act(area, "create with partitions and properties", func() error {
		return topics.CreateWithProperties(p, 2, map[string]string{"a": "b"})
	}, o.shows(o.path("p")+"/partitions", map[string]any{"partitions": 2, "deleted": false, "properties": map[string]string{"a": "b"}}))
	o.act(area, "add partitions", func() error { return topics.Update(p, 3) }, func() error {
		found, err := o.client.TopicPartitions(p.String())
		return same(len(found), 3, err)
	})
	o.refused(area, "fewer partitions", 422, "can't be less than", func() error { return topics.Update(p, 2) })
	o.refused(area, "partitions of a topic without", 409, "is not the partitioned topic", func() error { return topics.Update(t, 2) })
	o.act(area, "metadata", func() error {
		found, err := topics.GetMetadata(p)
		return same(found.Partitions, 3, err)
	}, nil)
	o.act(area, "list", func() error {
		partitioned, plain, err := topics.List(o.namespace())
		return same([]bool{slices.Contains(partitioned, p.String()), slices.Contains(plain, name)}, []bool{true, true}, err)
	}, nil)
	o.act(area, "properties", func() error {
		return topics.UpdateProperties(t, map[string]string{"x": "y", "c": "d"})
	}, o.shows(o.path("t")+"/properties", map[string]string{"x": "y", "c": "d"}))
	o.act(area, "remove a property", func() error { return topics.RemoveProperty(t, "x") },
		o.shows(o.path("t")+"/properties", map[string]string{"c": "d"}))
	o.act(area, "grant a permission", func() error { return topics.GrantPermission(t, "role", []utils.AuthAction{"consume"}) },
		o.shows("/namespaces/"+o.tenant+"/ns", []string{"consume"}, "auth_policies", "destination_auth", name, "role"))
	o.act(area, "permissions", func() error {
		found, err := topics.GetPermissions(t)
		return same(found, map[string][]utils.AuthAction{"role": {"consume"}}, err)
	}, nil)
	o.act(area, "revoke a permission", func() error { return topics.RevokePermission(t, "role") },
		o.shows(o.path("t")+"/permissions", map[string]any{}))
	o.act(area, "lookup", func() error {
		found, err := topics.Lookup(t)
		return same(found.HTTPURL, o.web, err)
	}, nil)
	o.act(area, "bundle", func() error {
		found, err := topics.GetBundleRange(t)
		return same(strings.HasPrefix(found, "0x"), true, err)
	}, nil)
	o.act(area, "last message", func() error { return o.publish("t", 0, 10) }, func() error {
		found, err := topics.GetLastMessageID(t)
		return same(found.EntryID, int64(9), err)
	})
	o.act(area, "message by time", func() error {
		found, err := topics.GetMessageID(t, 0)
		return same(found.EntryID, int64(0), err)
	}, nil)
	o.act(area, "stats", func() error {
		found, err := topics.GetStats(t)
		return same([]int64{int64(len(found.Subscriptions)), int64(len(found.Publishers))}, []int64{0, 0}, err)
	}, o.shows(o.path("t")+"/stats", 10, "msgInCounter"))
	o.act(area, "stats with options", func() error {
		found, err := topics.GetStatsWithOption(t, utils.GetStatsOptions{GetPreciseBacklog: true, ExcludeConsumers: true})
		return same(found.StorageSize > 0, true, err)
	}, nil)
	o.act(area, "internal stats", func() error {
		found, err := topics.GetInternalStats(t)
		return same([]int64{found.NumberOfEntries, int64(len(found.Ledgers))}, []int64{10, 1}, err)
	}, nil)
	o.act(area, "internal info", func() error {
		found, err := topics.GetInternalInfo(t)
		return same(len(found.Ledgers), 1, err)
	}, nil)
	o.act(area, "stats of partitions", func() error { return o.publish("p", 0, 6) }, func() error {
		found, err := topics.GetPartitionedStats(p, true)
		return same(len(found.Partitions), 3, err)
	})
	o.act(area, "sums of partitions", func() error { return nil }, o.shows(o.path("p")+"/partitioned-stats", 6, "msgInCounter"))
	o.act(area, "unload", func() error { return topics.Unload(t) }, o.shows(o.path("t")+"/stats", 0, "msgInCounter"))
	for what, do := range map[string]func() error{
		"offload":        func() error { return topics.Offload(t, utils.Latest) },
		"offload status": func() error { _, err := topics.OffloadStatus(t); return err },
	} {
		o.refused(area, what, 501, "yet", do)
	}
	compacted := o.topic("compacted")
	o.act(area, "compact", func() error {
		if err := o.publish("compacted", 0, 3); err != nil {
			return err
		}
		return topics.Compact(compacted)
	}, func() error {
		return soon(func() error {
			found, err := topics.CompactStatus(compacted)
			return same(string(found.Status), "SUCCESS", err)
		})
	})
	o.act(area, "compact status", func() error { return topics.Delete(compacted, false, true) }, func() error {
		if _, err := topics.CompactStatus(compacted); err == nil {
			return fmt.Errorf("a topic that is deleted has a status")
		}
		return nil
	})
	end := o.topic("end")
	o.act(area, "terminate", func() error {
		if err := o.publish("end", 0, 2); err != nil {
			return err
		}
		found, err := topics.Terminate(end)
		return same(found.EntryID, int64(1), err)
	}, func() error { return o.cannotProduce("end", "erminated") })
	o.act(area, "delete", func() error { return topics.Delete(end, false, true) }, func() error {
		_, plain, err := topics.List(o.namespace())
		return same(slices.Contains(plain, end.String()), false, err)
	})
	o.refused(area, "delete it again", 404, "not found", func() error { return topics.Delete(end, false, true) })
	o.refused(area, "stats of one that is not there", 404, "Topic persistent://"+o.tenant+"/ns/none not found", func() error {
		_, err := topics.GetStats(o.topic("none"))
		return err
	})
	o.act(area, "delete one in use by force", func() error {
		consumer, err := o.consumer("used", "s", pulsar.Shared)
		if err != nil {
			return err
		}
		defer consumer.Close()
		if err := topics.Delete(o.topic("used"), false, true); err == nil || !strings.Contains(err.Error(), "code: 412") {
			return fmt.Errorf("in use, and: %v", err)
		}
		return topics.Delete(o.topic("used"), true, true)
	}, nil)
}
