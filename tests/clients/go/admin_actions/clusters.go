package main

import (
	"slices"

	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

func (o *operator) clustersAndTenants() {
	const area = "clusters"
	clusters, tenants := o.admin.Clusters(), o.admin.Tenants()
	o.act(area, "list", func() error {
		found, err := clusters.List()
		return same(slices.Contains(found, "standalone"), true, err)
	}, o.shows("/clusters/standalone", o.web, "serviceUrl"))
	data := utils.ClusterData{Name: o.tenant + "-c", ServiceURL: "http://there:8080", BrokerServiceURL: "pulsar://there:6650"}
	path := "/clusters/" + data.Name
	o.act(area, "create", func() error { return clusters.Create(data) }, o.shows(path, "http://there:8080", "serviceUrl"))
	data.ServiceURL = "http://elsewhere:8080"
	o.act(area, "update", func() error { return clusters.Update(data) }, o.shows(path, "http://elsewhere:8080", "serviceUrl"))
	o.act(area, "get", func() error {
		found, err := clusters.Get(data.Name)
		return same(found.BrokerServiceURL, "pulsar://there:6650", err)
	}, nil)
	domain := utils.FailureDomainData{ClusterName: data.Name, DomainName: "d", BrokerList: []string{"b:8080"}}
	domains := path + "/failureDomains"
	o.act(area, "create a failure domain", func() error { return clusters.CreateFailureDomain(domain) },
		o.shows(domains, domain.BrokerList, "d", "brokers"))
	domain.BrokerList = []string{"c:8080"}
	o.act(area, "update a failure domain", func() error { return clusters.UpdateFailureDomain(domain) },
		o.shows(domains, domain.BrokerList, "d", "brokers"))
	o.act(area, "delete a failure domain", func() error { return clusters.DeleteFailureDomain(domain) },
		o.shows(domains, map[string]any{}))
	o.act(area, "delete", func() error { return clusters.Delete(data.Name) }, func() error {
		found, err := clusters.List()
		return same(slices.Contains(found, data.Name), false, err)
	})
	o.refused(area, "get one that is not there", 404, "Cluster does not exist", func() error {
		_, err := clusters.Get("none")
		return err
	})

	const tenancy = "tenants"
	tenant := utils.TenantData{Name: o.tenant, AdminRoles: []string{"a"}, AllowedClusters: []string{"standalone"}}
	path = "/tenants/" + o.tenant
	o.act(tenancy, "create", func() error { return tenants.Create(tenant) }, o.shows(path, []string{"a"}, "adminRoles"))
	tenant.AdminRoles = []string{"b"}
	o.act(tenancy, "update", func() error { return tenants.Update(tenant) }, o.shows(path, []string{"b"}, "adminRoles"))
	o.act(tenancy, "list", func() error {
		found, err := tenants.List()
		return same(slices.Contains(found, o.tenant), true, err)
	}, nil)
	o.act(tenancy, "get", func() error {
		found, err := tenants.Get(o.tenant)
		return same(found.AllowedClusters, []string{"standalone"}, err)
	}, nil)
	o.refused(tenancy, "create it again", 409, "Tenant already exist", func() error { return tenants.Create(tenant) })
	o.refused(tenancy, "get one that is not there", 404, "Tenant does not exist", func() error {
		_, err := tenants.Get("none")
		return err
	})
}

func (o *operator) brokers() {
	const area = "brokers"
	brokers, stats := o.admin.Brokers(), o.admin.BrokerStats()
	var id string
	o.act(area, "list", func() error {
		found, err := brokers.GetActiveBrokers("standalone")
		if err == nil && len(found) == 1 {
			id = found[0]
		}
		return same("http://"+id, o.web, err)
	}, nil)
	o.act(area, "leader", func() error {
		found, err := brokers.GetLeaderBroker()
		return same(found.BrokerID, id, err)
	}, nil)
	o.act(area, "health", brokers.HealthCheck, o.shows("/brokers/ready", "ok"))
	o.act(area, "configuration in force", func() error {
		found, err := brokers.GetRuntimeConfigurations()
		return same(found["clusterName"], "standalone", err)
	}, nil)
	o.act(area, "configuration that can be changed", func() error {
		found, err := brokers.GetDynamicConfigurationNames()
		return same(len(found) > 0, true, err)
	}, nil)
	o.act(area, "change the configuration", func() error {
		return brokers.UpdateDynamicConfiguration("dispatchThrottlingRatePerTopicInMsg", "100000")
	}, func() error {
		return soon(o.shows("/brokers/configuration/runtime", "100000", "dispatchThrottlingRatePerTopicInMsg"))
	})
	o.act(area, "what was changed", func() error {
		found, err := brokers.GetAllDynamicConfigurations()
		return same(found["dispatchThrottlingRatePerTopicInMsg"], "100000", err)
	}, nil)
	o.act(area, "change it back", func() error { return brokers.DeleteDynamicConfiguration("dispatchThrottlingRatePerTopicInMsg") },
		o.shows("/brokers/configuration/values", nil, "dispatchThrottlingRatePerTopicInMsg"))
	o.act(area, "internal configuration", func() error {
		found, err := brokers.GetInternalConfigurationData()
		return same(found != nil && found.LedgersRootPath != "", true, err)
	}, nil)
	o.act(area, "namespaces of a broker", func() error {
		_, err := brokers.GetOwnedNamespaces("standalone", id)
		return err
	}, nil)
	o.act(area, "load report", func() error {
		found, err := stats.GetLoadReport()
		return same(found != nil, true, err)
	}, nil)
	o.act(area, "metrics", func() error {
		found, err := stats.GetMetrics()
		return same(found != nil, true, err)
	}, nil)
	quotas := o.admin.ResourceQuotas()
	o.act(area, "default resource quota", func() error {
		found, err := quotas.GetDefaultResourceQuota()
		return same(found != nil, true, err)
	}, nil)
	o.refused(area, "change a key that does not exist", 412, "non-dynamic configuration", func() error {
		return brokers.UpdateDynamicConfiguration("nonsense", "1")
	})
}

// end deletes what is left, which is the last proof that it can be.
func (o *operator) end() {
	const area = "end"
	name := o.tenant + "/ns"
	o.act(area, "delete the topics", func() error {
		partitioned, topics, err := o.admin.Topics().List(o.namespace())
		if err != nil {
			return err
		}
		for _, each := range partitioned {
			topic, _ := utils.GetTopicName(each)
			if err := o.admin.Topics().Delete(*topic, true, false); err != nil {
				return err
			}
		}
		for _, each := range topics {
			topic, _ := utils.GetTopicName(each)
			if topic.IsPersistent() && topic.GetPartitionIndex() < 0 {
				if err := o.admin.Topics().Delete(*topic, true, true); err != nil {
					return err
				}
			}
		}
		return nil
	}, o.shows("/namespaces/"+name+"/topics", []string{}))
	o.act(area, "delete the namespace", func() error { return o.admin.Namespaces().DeleteNamespace(name) }, func() error {
		found, err := o.admin.Namespaces().GetNamespaces(o.tenant)
		return same(slices.Contains(found, name), false, err)
	})
	o.act(area, "delete the tenant", func() error { return o.admin.Tenants().Delete(o.tenant) }, func() error {
		found, err := o.admin.Tenants().List()
		return same(slices.Contains(found, o.tenant), false, err)
	})
}
