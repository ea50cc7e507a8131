// Package pmda makes a PCP agent (PMDA) out of a [Source] of metrics.
//
// It does what libpcp_pmda does for an agent written in C: it speaks first on
// the connection to pmcd, answers every request with exactly one PDU, keeps
// the instance profile, looks up instances, merges labels, announces changed
// names and labels, and turns errors into PM_ERR_* codes. In the terms of
// <pcp/pmda.h> an agent made with it is a daemon of PMDA_INTERFACE_7.
//
// An agent implements [Source] and [Session], and runs
//
//	agent := pmda.New(pmda.Config{Name: "sample", Domain: 253}, source, log)
//	fd := pmda.NewPipe(0, 1)
//	err := agent.Serve(ctx, fd.Conn())
//
// [Tree] is a name space with libpcp's order and look-up rules, for agents
// that have no better one of their own.
package pmda
