package main

import (
	"slices"

	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

func (o *operator) namespaces() {
	const area = "namespaces"
	spaces, name := o.admin.Namespaces(), o.tenant+"/ns"
	path := "/namespaces/" + name
	o.act(area, "create with bundles", func() error { return spaces.CreateNsWithNumBundles(name, 4) },
		o.shows(path+"/bundles", 4, "numBundles"))
	o.refused(area, "create it again", 409, "Namespace already exists", func() error { return spaces.CreateNamespace(name) })
	o.act(area, "list", func() error {
		found, err := spaces.GetNamespaces(o.tenant)
		return same(found, []string{name}, err)
	}, nil)
	o.act(area, "policies", func() error {
		found, err := spaces.GetPolicies(name)
		return same(found != nil && slices.Equal(found.ReplicationClusters, []string{"standalone"}), true, err)
	}, nil)
	o.act(area, "grant a permission", func() error {
		return spaces.GrantNamespacePermission(o.namespace(), "role", []utils.AuthAction{"produce", "consume"})
	}, o.shows(path, []string{"produce", "consume"}, "auth_policies", "namespace_auth", "role"))
	o.act(area, "permissions", func() error {
		found, err := spaces.GetNamespacePermissions(o.namespace())
		return same(len(found["role"]), 2, err)
	}, nil)
	o.act(area, "revoke a permission", func() error { return spaces.RevokeNamespacePermission(o.namespace(), "role") },
		o.shows(path+"/permissions", map[string]any{}))
	o.act(area, "grant a subscription", func() error { return spaces.GrantSubPermission(o.namespace(), "s", []string{"role"}) },
		o.shows(path, []string{"role"}, "auth_policies", "subscription_auth_roles", "s"))
	o.act(area, "subscription permissions", func() error {
		found, err := spaces.GetSubPermissions(o.namespace())
		return same(found["s"], []string{"role"}, err)
	}, nil)
	o.act(area, "revoke a subscription", func() error { return spaces.RevokeSubPermission(o.namespace(), "s", "role") },
		o.shows(path+"/permissions/subscription", map[string]any{}))
	o.act(area, "set properties", func() error { return spaces.UpdateProperties(o.namespace(), map[string]string{"a": "b"}) },
		o.shows(path+"/properties", map[string]string{"a": "b"}))
	o.act(area, "remove properties", func() error { return spaces.RemoveProperties(o.namespace()) },
		o.shows(path+"/properties", map[string]any{}))
	o.act(area, "anti-affinity group", func() error { return spaces.SetNamespaceAntiAffinityGroup(name, "g") },
		o.shows(path+"/antiAffinity", "g"))
	o.act(area, "namespaces of a group", func() error {
		found, err := spaces.GetAntiAffinityNamespaces(o.tenant, "standalone", "g")
		return same(found, []string{name}, err)
	}, nil)
	o.act(area, "leave the group", func() error { return spaces.DeleteNamespaceAntiAffinityGroup(name) },
		o.shows(path+"/antiAffinity", nil))
	o.refused(area, "topics of one that is not there", 404, "Namespace does not exist", func() error {
		_, err := spaces.GetTopics(o.tenant + "/none")
		return err
	})
}

func (o *operator) namespacePolicies() {
	const area = "namespace policies"
	spaces, name := o.admin.Namespaces(), o.tenant+"/ns"
	path := "/namespaces/" + name
	set := func(what string, do func() error, want any, members ...string) {
		o.act(area, "set "+what, do, o.shows(path, want, members...))
	}
	remove := func(what string, do func() error, members ...string) {
		o.act(area, "remove "+what, do, o.shows(path, nil, members...))
	}
	set("the time to live", func() error { return spaces.SetNamespaceMessageTTL(name, 77) }, 77, "message_ttl_in_seconds")
	o.act(area, "read the time to live", func() error {
		found, err := spaces.GetNamespaceMessageTTL(name)
		return same(found, 77, err)
	}, nil)
	remove("the time to live", func() error { return spaces.RemoveNamespaceMessageTTL(name) }, "message_ttl_in_seconds")
	set("retention", func() error { return spaces.SetRetention(name, utils.NewRetentionPolicies(10, 20)) }, 20,
		"retention_policies", "retentionSizeInMB")
	o.act(area, "read retention", func() error {
		found, err := spaces.GetRetention(name)
		return same(found, &utils.RetentionPolicies{RetentionTimeInMinutes: 10, RetentionSizeInMB: 20}, err)
	}, nil)
	remove("retention", func() error { return spaces.RemoveRetention(name) }, "retention_policies")
	quota := utils.NewBacklogQuota(1<<20, 60, utils.ProducerException)
	set("a backlog quota", func() error { return spaces.SetBacklogQuota(name, quota, utils.DestinationStorage) }, 1<<20,
		"backlog_quota_map", "destination_storage", "limitSize")
	o.act(area, "read backlog quotas", func() error {
		found, err := spaces.GetBacklogQuotaMap(name)
		return same(found[utils.DestinationStorage], quota, err)
	}, nil)
	remove("a backlog quota", func() error { return spaces.RemoveBacklogQuota(name) }, "backlog_quota_map", "destination_storage")
	rate := utils.DispatchRate{DispatchThrottlingRateInMsg: 100, DispatchThrottlingRateInByte: 1000, RatePeriodInSecond: 1}
	set("the dispatch rate", func() error { return spaces.SetDispatchRate(o.namespace(), rate) }, 100,
		"topicDispatchRate", "standalone", "dispatchThrottlingRateInMsg")
	o.act(area, "read the dispatch rate", func() error {
		found, err := spaces.GetDispatchRate(o.namespace())
		return same(found, rate, err)
	}, nil)
	set("the dispatch rate of subscriptions", func() error { return spaces.SetSubscriptionDispatchRate(o.namespace(), rate) }, 100,
		"subscriptionDispatchRate", "standalone", "dispatchThrottlingRateInMsg")
	set("the publish rate", func() error {
		return spaces.SetPublishRate(o.namespace(), utils.PublishRate{PublishThrottlingRateInMsg: 9, PublishThrottlingRateInByte: 1 << 20})
	}, 9, "publishMaxMessageRate", "standalone", "publishThrottlingRateInMsg")
	o.act(area, "read the publish rate", func() error {
		found, err := spaces.GetPublishRate(o.namespace())
		return same(found.PublishThrottlingRateInMsg, 9, err)
	}, nil)
	set("no publish rate", func() error { return spaces.SetPublishRate(o.namespace(), *utils.NewPublishRate()) }, -1,
		"publishMaxMessageRate", "standalone", "publishThrottlingRateInMsg")
	set("the subscribe rate", func() error {
		return spaces.SetSubscribeRate(o.namespace(), utils.SubscribeRate{SubscribeThrottlingRatePerConsumer: 100, RatePeriodInSecond: 30})
	}, 100, "clusterSubscribeRate", "standalone", "subscribeThrottlingRatePerConsumer")
	set("no subscribe rate", func() error { return spaces.SetSubscribeRate(o.namespace(), *utils.NewSubscribeRate()) }, -1,
		"clusterSubscribeRate", "standalone", "subscribeThrottlingRatePerConsumer")
	set("most producers", func() error { return spaces.SetMaxProducersPerTopic(o.namespace(), 50) }, 50, "max_producers_per_topic")
	remove("most producers", func() error { return spaces.RemoveMaxProducersPerTopic(o.namespace()) }, "max_producers_per_topic")
	set("most consumers", func() error { return spaces.SetMaxConsumersPerTopic(o.namespace(), 50) }, 50, "max_consumers_per_topic")
	remove("most consumers", func() error { return spaces.RemoveMaxConsumersPerTopic(o.namespace()) }, "max_consumers_per_topic")
	set("most consumers of a subscription", func() error { return spaces.SetMaxConsumersPerSubscription(o.namespace(), 50) }, 50,
		"max_consumers_per_subscription")
	remove("most consumers of a subscription", func() error { return spaces.RemoveMaxConsumersPerSubscription(o.namespace()) },
		"max_consumers_per_subscription")
	set("most topics", func() error { return spaces.SetMaxTopicsPerNamespace(o.namespace(), 500) }, 500, "max_topics_per_namespace")
	remove("most topics", func() error { return spaces.RemoveMaxTopicsPerNamespace(o.namespace()) }, "max_topics_per_namespace")
	set("persistence", func() error { return spaces.SetPersistence(name, utils.NewPersistencePolicies(1, 1, 1, 2)) }, 2,
		"persistence", "managedLedgerMaxMarkDeleteRate")
	remove("persistence", func() error { return spaces.RemovePersistence(name) }, "persistence")
	mode := utils.DeleteWhenSubscriptionsCaughtUp
	set("inactive topics", func() error {
		return spaces.SetInactiveTopicPolicies(o.namespace(), utils.NewInactiveTopicPolicies(&mode, 600, true))
	}, 600, "inactive_topic_policies", "maxInactiveDurationSeconds")
	remove("inactive topics", func() error { return spaces.RemoveInactiveTopicPolicies(o.namespace()) }, "inactive_topic_policies")
	set("expiration of subscriptions", func() error { return spaces.SetSubscriptionExpirationTime(o.namespace(), 600) }, 600,
		"subscription_expiration_time_minutes")
	remove("expiration of subscriptions", func() error { return spaces.RemoveSubscriptionExpirationTime(o.namespace()) },
		"subscription_expiration_time_minutes")
	set("no automatic topics", func() error {
		return spaces.SetTopicAutoCreation(o.namespace(), utils.TopicAutoCreationConfig{Allow: false})
	}, false, "autoTopicCreationOverride", "allowAutoTopicCreation")
	o.act(area, "and none are made", func() error { return o.cannotProduce("auto", "NotFound") }, nil)
	remove("no automatic topics", func() error { return spaces.RemoveTopicAutoCreation(o.namespace()) }, "autoTopicCreationOverride")
	set("encryption", func() error { return spaces.SetEncryptionRequiredStatus(o.namespace(), true) }, true, "encryption_required")
	o.act(area, "and nobody produces without", func() error { return o.cannotProduce("plain", "ncrypt") }, nil)
	set("no encryption", func() error { return spaces.SetEncryptionRequiredStatus(o.namespace(), false) }, false, "encryption_required")
	o.refused(area, "a negative time to live", 412, "Invalid value for message TTL", func() error {
		return spaces.SetNamespaceMessageTTL(name, -3)
	})
	o.refused(area, "a negative maximum", 412, "must be 0 or more", func() error { return spaces.SetMaxProducersPerTopic(o.namespace(), -3) })
	o.act(area, "deduplication", func() error { return spaces.SetDeduplicationStatus(name, true) }, nil)
}
