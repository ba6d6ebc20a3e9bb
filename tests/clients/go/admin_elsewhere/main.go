// Asks one broker of a cluster for what is done at another, through Apache's Go admin package: redirects are followed with method and
// body, and what concerns a partitioned topic is done to all of its partitions. Arguments: the URL of the broker's web server, then
// topics, then a name for a partitioned one.
package main

import (
	"fmt"
	"os"
	"reflect"

	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/config"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func same(got, wanted any, err error) {
	check(err)
	if !reflect.DeepEqual(got, wanted) {
		panic(fmt.Sprintf("got %v, wanted %v", got, wanted))
	}
}

func one(client admin.Client, name string, partitions int) {
	topic, err := utils.GetTopicName(name)
	check(err)
	check(client.Topics().Create(*topic, partitions))
	check(client.Subscriptions().Create(*topic, "s", utils.Earliest))
	found, err := client.Subscriptions().List(*topic)
	same(found, []string{"s"}, err)
	check(client.Topics().SetRetention(*topic, utils.RetentionPolicies{RetentionTimeInMinutes: 10, RetentionSizeInMB: 20}))
	retention, err := client.Topics().GetRetention(*topic, false)
	same(*retention, utils.RetentionPolicies{RetentionTimeInMinutes: 10, RetentionSizeInMB: 20}, err)
	check(client.Subscriptions().ClearBacklog(*topic, "s"))
	check(client.Subscriptions().ResetCursorToTimestamp(*topic, "s", 1))
	check(client.Topics().Unload(*topic))
	check(client.Subscriptions().Delete(*topic, "s"))
	check(client.Topics().Delete(*topic, true, partitions == 0))
}

func main() {
	client, err := admin.New(&config.Config{WebServiceURL: os.Args[1]})
	check(err)
	last := len(os.Args) - 1
	for _, name := range os.Args[2:last] {
		one(client, name, 0)
	}
	one(client, os.Args[last], 8)
	fmt.Printf("%d right\n", last-1)
}
