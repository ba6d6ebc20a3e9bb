package main

import (
	"time"

	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

func (o *operator) subscriptions() {
	const area = "subscriptions"
	subs, t := o.admin.Subscriptions(), o.topic("t")
	backlog := func(name string, want int) func() error {
		return o.shows(o.path("t")+"/stats", want, "subscriptions", name, "msgBacklog")
	}
	is := func(name, want string) func() error {
		return func() error {
			found, err := o.next("t", name)
			return same(found, want, err)
		}
	}
	last, err := o.admin.Topics().GetLastMessageID(t)
	if err != nil {
		panic(err)
	}
	o.act(area, "create at the earliest", func() error { return subs.Create(t, "s", utils.Earliest) }, backlog("s", 10))
	o.act(area, "create at the latest", func() error { return subs.Create(t, "late", utils.Latest) }, backlog("late", 0))
	middle := last
	middle.EntryID = 5
	o.act(area, "create at a message", func() error { return subs.Create(t, "middle", middle) }, is("middle", "m5"))
	o.refused(area, "create it again", 409, "Subscription already exists", func() error { return subs.Create(t, "s", utils.Earliest) })
	o.act(area, "list", func() error {
		found, err := subs.List(t)
		return same(len(found), 3, err)
	}, nil)
	o.act(area, "peek", func() error {
		found, err := subs.PeekMessages(t, "s", 3)
		if err != nil || len(found) != 3 {
			return same(len(found), 3, err)
		}
		return same(string(found[2].GetPayload()), "m2", nil)
	}, backlog("s", 10))
	o.act(area, "message by id", func() error {
		found, err := subs.GetMessageByID(t, last.LedgerID, 4)
		if err != nil {
			return err
		}
		return same(string(found.GetPayload()), "m4", nil)
	}, nil)
	o.refused(area, "message that is not there", 404, "not found", func() error {
		_, err := subs.GetMessageByID(t, last.LedgerID, 4000)
		return err
	})
	o.act(area, "skip", func() error { return subs.SkipMessages(t, "s", 2) }, is("s", "m2"))
	o.act(area, "reset to a message", func() error { return subs.ResetCursorToMessageID(t, "s", middle) }, is("s", "m5"))
	o.act(area, "reset to a time", func() error { return subs.ResetCursorToTimestamp(t, "s", 1) }, is("s", "m0"))
	o.act(area, "clear the backlog", func() error { return subs.ClearBacklog(t, "s") }, backlog("s", 0))
	o.act(area, "reset again", func() error { return subs.ResetCursorToTimestamp(t, "s", 1) }, backlog("s", 10))
	o.act(area, "expire nothing that is young", func() error { return subs.ExpireMessages(t, "s", 3600) }, backlog("s", 10))
	time.Sleep(1100 * time.Millisecond) // until what was published is older than a second
	o.act(area, "expire what is older than a second", func() error { return subs.ExpireMessages(t, "s", 1) }, func() error {
		return soon(backlog("s", 0))
	})
	o.act(area, "expire on all", func() error { return subs.ExpireAllMessages(t, 1) }, func() error { return soon(backlog("middle", 0)) })
	o.act(area, "delete", func() error { return subs.Delete(t, "late") }, o.shows(o.path("t")+"/subscriptions", []string{"middle", "s"}))
	o.refused(area, "delete it again", 404, "late not found", func() error { return subs.Delete(t, "late") })
	o.act(area, "delete by force", func() error {
		consumer, err := o.consumer("t", "middle", 0)
		if err != nil {
			return err
		}
		defer consumer.Close()
		return subs.ForceDelete(t, "middle")
	}, nil)
	o.refused(area, "skip on one that is not there", 404, "none not found", func() error { return subs.SkipMessages(t, "none", 1) })
	o.act(area, "create on partitions", func() error { return subs.Create(o.topic("p"), "s", utils.Earliest) },
		o.shows(o.path("p")+"/partitioned-stats", 6, "subscriptions", "s", "msgBacklog"))
	o.act(area, "clear on partitions", func() error { return subs.ClearBacklog(o.topic("p"), "s") },
		o.shows(o.path("p")+"/partitioned-stats", 0, "subscriptions", "s", "msgBacklog"))
	spaces, name := o.admin.Namespaces(), o.tenant+"/ns"
	o.act(area, "clear everywhere", func() error {
		if err := subs.ResetCursorToTimestamp(t, "s", 1); err != nil {
			return err
		}
		return spaces.ClearNamespaceBacklog(o.namespace())
	}, backlog("s", 0))
	o.act(area, "unload the namespace", func() error { return spaces.Unload(name) }, backlog("s", 0))
}
