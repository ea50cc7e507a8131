package pcpwire

import "fmt"

// PMID names a metric (pmID): bits 30..22 are the domain, 21..10 the cluster,
// 9..0 the item.
type PMID uint32

// PMIDNull is no metric (PM_ID_NULL).
const PMIDNull PMID = 0xffffffff

const (
	domainMask  = 0x1ff
	clusterMask = 0xfff
	itemMask    = 0x3ff
	serialMask  = 0x3fffff

	// dynamicDomain marks, with item 0, the root of a name space that an agent
	// keeps; the cluster is then the agent's domain.
	dynamicDomain = 511
)

// NewPMID builds a PMID. Bits of an argument that do not fit are dropped.
func NewPMID(domain, cluster, item uint32) PMID {
	return PMID(domain&domainMask<<22 | cluster&clusterMask<<10 | item&itemMask)
}

// Domain is 0..510, or 511 in the root of a dynamic name space.
func (p PMID) Domain() uint32 { return uint32(p) >> 22 & domainMask }

// Cluster is 0..4095.
func (p PMID) Cluster() uint32 { return uint32(p) >> 10 & clusterMask }

// Item is 0..1023.
func (p PMID) Item() uint32 { return uint32(p) & itemMask }

// String returns "domain.cluster.item", as pmIDStr does, and its special forms
// "PM_ID_NULL" and "70.*.*".
func (p PMID) String() string {
	switch {
	case p == PMIDNull:
		return "PM_ID_NULL"
	case p.Domain() == dynamicDomain && p.Item() == 0:
		return fmt.Sprintf("%d.*.*", p.Cluster())
	}
	return fmt.Sprintf("%d.%d.%d", p.Domain(), p.Cluster(), p.Item())
}

// InDom names an instance domain (pmInDom): bits 30..22 are the domain, 21..0
// the serial.
type InDom uint32

// InDomNull is the instance domain of a singular metric (PM_INDOM_NULL).
const InDomNull InDom = 0xffffffff

// InstNull is the instance of a singular metric, and no instance (PM_IN_NULL).
const InstNull int32 = -1

// NewInDom builds an InDom. Bits of an argument that do not fit are dropped.
func NewInDom(domain, serial uint32) InDom {
	return InDom(domain&domainMask<<22 | serial&serialMask)
}

// Domain is 0..510.
func (d InDom) Domain() uint32 { return uint32(d) >> 22 & domainMask }

// Serial is 0..4194303.
func (d InDom) Serial() uint32 { return uint32(d) & serialMask }

// String returns "domain.serial", as pmInDomStr does, or "PM_INDOM_NULL".
func (d InDom) String() string {
	if d == InDomNull {
		return "PM_INDOM_NULL"
	}
	return fmt.Sprintf("%d.%d", d.Domain(), d.Serial())
}
