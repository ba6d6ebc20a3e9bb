package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

// topicPolicies are set, read back from the topic after it was unloaded, and removed; some are shown to hold by a client.
func (o *operator) topicPolicies() {
	const area = "topic policies"
	topics, name := o.admin.Topics(), "policies"
	t := o.topic(name)
	if err := topics.Create(t, 0); err != nil {
		panic(err)
	}
	both := func(what, route string, set, remove func() error, want any, holds func() error, members ...string) {
		o.act(area, "set "+what, set, func() error {
			if err := topics.Unload(t); err != nil {
				return err
			}
			if err := o.shows(o.path(name)+"/"+route+"?applied=true", want, members...)(); err != nil || holds == nil {
				return err
			}
			return holds()
		})
		o.act(area, "remove "+what, remove, o.shows(o.path(name)+"/"+route, nil, members...))
	}
	both("the time to live", "messageTTL", func() error { return topics.SetMessageTTL(t, 33) },
		func() error { return topics.RemoveMessageTTL(t) }, 33, nil)
	both("retention", "retention", func() error { return topics.SetRetention(t, utils.NewRetentionPolicies(5, 6)) },
		func() error { return topics.RemoveRetention(t) }, 6, nil, "retentionSizeInMB")
	quota := utils.NewBacklogQuota(1, -1, utils.ProducerException)
	both("a backlog quota", "backlogQuotaMap", func() error { return topics.SetBacklogQuota(t, quota, utils.DestinationStorage) },
		func() error { return topics.RemoveBacklogQuota(t, utils.DestinationStorage) }, 1, nil, "destination_storage", "limitSize")
	both("most producers", "maxProducers", func() error { return topics.SetMaxProducers(t, 1) },
		func() error { return topics.RemoveMaxProducers(t) }, 1, func() error {
			first, err := o.producer(name)
			if err != nil {
				return err
			}
			defer first.Close()
			return o.cannotProduce(name, "max")
		})
	both("most consumers", "maxConsumers", func() error { return topics.SetMaxConsumers(t, 1) },
		func() error { return topics.RemoveMaxConsumers(t) }, 1, func() error {
			return o.secondIsRefused(name, "one", "two")
		})
	both("most consumers of a subscription", "maxConsumersPerSubscription", func() error { return topics.SetMaxConsumersPerSubscription(t, 1) },
		func() error { return topics.RemoveMaxConsumersPerSubscription(t) }, 1, func() error {
			return o.secondIsRefused(name, "one", "one")
		})
	both("most subscriptions", "maxSubscriptionsPerTopic", func() error { return topics.SetMaxSubscriptionsPerTopic(t, 1) },
		func() error { return topics.RemoveMaxSubscriptionsPerTopic(t) }, 1, func() error {
			return o.secondIsRefused(name, "one", "three")
		})
	both("most unacknowledged of a consumer", "maxUnackedMessagesOnConsumer",
		func() error { return topics.SetMaxUnackMessagesPerConsumer(t, 44) },
		func() error { return topics.RemoveMaxUnackMessagesPerConsumer(t) }, 44, nil)
	both("most unacknowledged of a subscription", "maxUnackedMessagesOnSubscription",
		func() error { return topics.SetMaxUnackMessagesPerSubscription(t, 45) },
		func() error { return topics.RemoveMaxUnackMessagesPerSubscription(t) }, 45, nil)
	both("the size of messages", "maxMessageSize", func() error { return topics.SetMaxMessageSize(t, 10) },
		func() error { return topics.RemoveMaxMessageSize(t) }, 10, func() error { return o.tooLarge(name, 11) })
	rate := utils.DispatchRateData{DispatchThrottlingRateInMsg: 7, DispatchThrottlingRateInByte: 700, RatePeriodInSecond: 1}
	both("the dispatch rate", "dispatchRate", func() error { return topics.SetDispatchRate(t, rate) },
		func() error { return topics.RemoveDispatchRate(t) }, 7, nil, "dispatchThrottlingRateInMsg")
	both("the dispatch rate of subscriptions", "subscriptionDispatchRate",
		func() error { return topics.SetSubscriptionDispatchRate(t, rate) },
		func() error { return topics.RemoveSubscriptionDispatchRate(t) }, 7, nil, "dispatchThrottlingRateInMsg")
	both("the publish rate", "publishRate", func() error {
		return topics.SetPublishRate(t, utils.PublishRateData{PublishThrottlingRateInMsg: 8, PublishThrottlingRateInByte: 800})
	}, func() error { return topics.RemovePublishRate(t) }, 8, nil, "publishThrottlingRateInMsg")
	both("the subscribe rate", "subscribeRate", func() error {
		return topics.SetSubscribeRate(t, utils.SubscribeRate{SubscribeThrottlingRatePerConsumer: 9, RatePeriodInSecond: 10})
	}, func() error { return topics.RemoveSubscribeRate(t) }, 9, nil, "subscribeThrottlingRatePerConsumer")
	mode := utils.DeleteWhenSubscriptionsCaughtUp
	both("inactive topics", "inactiveTopicPolicies", func() error {
		return topics.SetInactiveTopicPolicies(t, utils.NewInactiveTopicPolicies(&mode, 500, true))
	}, func() error { return topics.RemoveInactiveTopicPolicies(t) }, 500, nil, "maxInactiveDurationSeconds")
	both("persistence", "persistence", func() error {
		return topics.SetPersistence(t, utils.PersistenceData{
			BookkeeperEnsemble: 1, BookkeeperWriteQuorum: 1, BookkeeperAckQuorum: 1, ManagedLedgerMaxMarkDeleteRate: 3,
		})
	}, func() error { return topics.RemovePersistence(t) }, 3, nil, "managedLedgerMaxMarkDeleteRate")
	both("no automatic subscriptions", "autoSubscriptionCreation", func() error {
		return topics.SetAutoSubscriptionCreation(t, utils.AutoSubscriptionCreationOverride{AllowAutoSubscriptionCreation: false})
	}, func() error { return topics.RemoveAutoSubscriptionCreation(t) }, false, func() error {
		consumer, err := o.consumer(name, "unheard-of", pulsar.Shared)
		if err == nil {
			consumer.Close()
			return fmt.Errorf("a subscription was made")
		}
		return nil
	}, "allowAutoSubscriptionCreation")
	o.refused(area, "a negative maximum", 412, "maxProducers must be 0 or more", func() error { return topics.SetMaxProducers(t, -1) })
	o.refused(area, "of a topic that is not there", 404, "none not found", func() error { return topics.SetMaxProducers(o.topic("none"), 1) })
	o.refused(area, "of a partition", 412, "for a partition", func() error { return topics.SetMaxProducers(o.topic("p-partition-0"), 1) })
	both("delayed delivery", "delayedDelivery", func() error {
		return topics.SetDelayedDelivery(t, utils.DelayedDeliveryData{Active: true, TickTime: 100})
	}, func() error { return topics.RemoveDelayedDelivery(t) }, 100, nil, "tickTime")
	both("the compaction threshold", "compactionThreshold", func() error { return topics.SetCompactionThreshold(t, 100) },
		func() error { return topics.RemoveCompactionThreshold(t) }, 100, nil)
	for what, do := range map[string]func() error{
		"replication clusters": func() error { return topics.SetReplicationClusters(t, []string{"standalone"}) },
	} {
		o.refused(area, what, 501, "cannot be set", do)
	}
}

func (o *operator) secondIsRefused(topic, first, second string) error {
	one, err := o.consumer(topic, first, pulsar.Shared)
	if err != nil {
		return err
	}
	defer one.Close()
	two, err := o.consumer(topic, second, pulsar.Shared)
	if err == nil {
		two.Close()
		return fmt.Errorf("a second consumer was let in")
	}
	return nil
}

func (o *operator) tooLarge(topic string, size int) error {
	producer, err := o.producer(topic)
	if err != nil {
		return err
	}
	defer producer.Close()
	bound, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if _, err = producer.Send(bound, &pulsar.ProducerMessage{Payload: []byte(strings.Repeat("x", size))}); err == nil {
		return fmt.Errorf("a message of %d bytes was taken", size)
	}
	return nil
}
