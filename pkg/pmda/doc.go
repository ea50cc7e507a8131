// Package pmda makes a PCP agent (PMDA) out of a [Source] of metrics.
//
// It does what libpcp_pmda does for an agent written in C: it speaks first on
// the connection to pmcd, answers every request with exactly one PDU, keeps
// the instance profile, looks up instances, merges labels, announces changed
// names and labels, and turns errors into PM_ERR_* codes. In the terms of
// <pcp/pmda.h> an agent made with it is a daemon of PMDA_INTERFACE_7, but for
// three things: a Session is not told of pmcd's clients and their attributes,
// "notready" in pmcd.conf must not be used, and there are no values of
// PM_TYPE_AGGREGATE or PM_TYPE_EVENT.
//
// An agent implements [Source] and [Session], and runs
//
//	agent := pmda.New(pmda.Config{Name: "sample", Domain: 253}, source, log)
//	fd := pmda.NewPipe(0, 1)
//	err := agent.Serve(ctx, fd.Conn())
//
// pmcd finds it by two things: a line in pmcd.conf, and, for names to be asked
// for, a root in its own name space that leaves them to the agent (see
// pmnsadd(1) and pmnsmerge(1)):
//
//	root { sample 253:*:* }
//
// pmcd gives up an agent that takes more than five seconds to answer (its
// option -t).
//
// [Tree] is a name space with libpcp's order and look-up rules, for agents
// that have no better one of their own. Where names come and go, build a new
// Tree then, and have [Session].Begin take it up and Changes tell of it.
package pmda
