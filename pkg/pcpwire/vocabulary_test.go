package pcpwire_test

import (
	"errors"
	"syscall"
	"testing"

	"pmdammv/pkg/pcpwire"
)

// TestStatus has the texts of pmErrStr.
func TestStatus(t *testing.T) {
	tests := []struct {
		status pcpwire.Status
		want   string
	}{
		{0, "No error"},
		{5, "No such PMAPI error code (5)"},
		{pcpwire.Status(-int32(syscall.EINVAL)), syscall.EINVAL.Error()},
		{pcpwire.ErrGeneric, "Generic error, already reported above"},
		{-12352, "No such PMAPI error code (-12352)"},
		{pcpwire.ErrText, "One-line or help text is not available"},
		{pcpwire.ErrAppVersion, "Metric not supported by this version of monitored application"},
		{pcpwire.ErrValue, "Missing metric value(s)"},
		{pcpwire.ErrTimeout, "Timeout waiting for a response from PMCD"},
		{pcpwire.ErrName, "Unknown metric name"},
		{pcpwire.ErrPMID, "Unknown or illegal metric identifier"},
		{pcpwire.ErrInDom, "Unknown or illegal instance domain identifier"},
		{pcpwire.ErrInst, "Unknown or illegal instance identifier"},
		{pcpwire.ErrUnit, "Illegal pmUnits specification"},
		{pcpwire.ErrConv, "Impossible value or scale conversion"},
		{pcpwire.ErrTrunc, "Truncation in value conversion"},
		{pcpwire.ErrSign, "Negative value in conversion to unsigned"},
		{pcpwire.ErrProfile, "Explicit instance identifier(s) required"},
		{pcpwire.ErrIPC, "IPC protocol failure"},
		{pcpwire.ErrEOF, "IPC channel closed"},
		{pcpwire.ErrNoProfile, "Missing profile - protocol botch"},
		{pcpwire.ErrNoAgent, "No PMCD agent for domain of request"},
		{pcpwire.ErrPermission, "No permission to perform requested operation"},
		{pcpwire.ErrAgain, "Try again. Information not currently available"},
		{pcpwire.ErrNotConn, "Not Connected"},
		{pcpwire.ErrNonLeaf, "Metric name is not a leaf in PMNS"},
		{pcpwire.ErrType, "Unknown or illegal metric type"},
		{pcpwire.ErrThread, "Operation not supported for multi-threaded applications"},
		{pcpwire.ErrNoContainer, "Container not found"},
		{pcpwire.ErrBadStore, "Bad input to pmstore"},
		{pcpwire.ErrNoLabels, "No support for metric label metadata"},
		{pcpwire.ErrPMDAFenced, "PMDA is currently fenced and unable to respond to requests"},
		{pcpwire.ErrArg, "Bad value for function argument"},
		{pcpwire.ErrBotch, "Internal inconsistency detected or assertion failed"},
		{pcpwire.ErrTooSmall, "Insufficient elements in list"},
		{pcpwire.ErrTooBig, "Result size exceeded"},
		{pcpwire.ErrFault, "QA fault injected"},
		{pcpwire.ErrPMDAReady, "PMDA is now responsive to requests"},
		{pcpwire.ErrPMDANotReady, "PMDA is not yet ready to respond to requests"},
		{pcpwire.ErrNYI, "Functionality not yet implemented"},
	}
	for _, tt := range tests {
		if got := tt.status.Error(); got != tt.want {
			t.Errorf("%d: %q, want %q", int32(tt.status), got, tt.want)
		}
	}
	// Some of the numbers as they are on the wire.
	for status, want := range map[pcpwire.Status]uint32{
		pcpwire.ErrGeneric: 0xffffcfc7, pcpwire.ErrIPC: 0xffffcfb2, pcpwire.ErrPMID: 0xffffcfba,
		pcpwire.ErrArg: 0xffffcf81, pcpwire.ErrFault: 0xffffcf63, pcpwire.ErrPMDANotReady: 0xffffcbae,
		pcpwire.ErrNYI: 0xffffaca0,
	} {
		if uint32(status) != want {
			t.Errorf("%v is %#x, want %#x", status, uint32(status), want)
		}
	}
}

// TestUnits has the texts of pmUnitsStr.
func TestUnits(t *testing.T) {
	tests := []struct {
		units pcpwire.Units
		want  string
	}{
		{0, ""},
		{0x1f013000, "Kbyte / sec"},
		{0x00100000, "count"},
		{0x01002000, "millisec"},
		{0x00000100, "count x 10"},
		{0x00000800, "count x 10^-8"},
		{0x00100100, "count x 10"},
		{0x00100300, "count x 10^3"},
		{0x00100f00, "count x 10^-1"},
		{0x0f003000, "/ sec"},
		{0x20f00000, "byte^2 / count"},
		{0x10090000, "space-9"},
		{0x01009000, "time-9"},
		{0x1f1f3000, "space-15 count / sec"},
		{0x0e000000, "/ nanosec^2"},
		{0x00f00000, "/ count"},
		{0x00f00100, "/ count x 10"},
		{0xf0000000, "/ byte"},
		{0xf1100000, "nanosec count / byte"},
		{0x00200000, "count^2"},
		{0x00200200, "count x 10^2^2"},
		{0x1f000000, "byte / nanosec"},
		{0x11100000, "byte nanosec count"},
		{0x1ff00000, "byte / nanosec count"},
		{0x70f00000, "byte^7 / count"},
		{0x80000000, "/ byte^8"},
		{0x00e00200, "/ count x 10^2^2"},
		{0x10080000, "Ybyte"},
		{0x01005000, "hour"},
		{0x00000009, "temperature (C)"},
		{0x00000012, "voltage (mV)"},
		{0x0000001b, "current (uA)"},
		{0x00000024, "power (uW)"},
		{0x000000f9, "/ temperature (C)"},
		{0x0f0030f9, "/ temperature (C) sec"},
		{0x00100009, "temperature (C) count"},
		{0x0000000d, "temperature (scale-5)"},
		{0x00000029, "extra-5"},
		{0x00000081, "/ extra-16"},
	}
	for _, tt := range tests {
		if got := tt.units.String(); got != tt.want {
			t.Errorf("%08x: %q, want %q", uint32(tt.units), got, tt.want)
		}
	}
}

func TestUnitsFields(t *testing.T) {
	u := pcpwire.NewUnits(1, -2, -8, pcpwire.SpaceYByte, pcpwire.TimeHour, -3) | 0xf9
	got := [...]int{
		u.DimSpace(), u.DimTime(), u.DimCount(), u.ScaleSpace(), u.ScaleTime(), u.ScaleCount(), u.ExtraUnit(), u.ExtraScale(),
	}
	if want := [...]int{1, -2, -8, 8, 5, -3, -1, 1}; got != want {
		t.Errorf("%08x: %v, want %v", uint32(u), got, want)
	}
	if u != 0x1e885df9 {
		t.Errorf("%08x", uint32(u))
	}
}

func TestPMID(t *testing.T) {
	tests := []struct {
		pmid pcpwire.PMID
		want string
	}{
		{0x11813402, "70.77.2"},
		{pcpwire.NewPMID(70, 77, 2), "70.77.2"},
		{pcpwire.NewPMID(510, 4095, 1023), "510.4095.1023"},
		{pcpwire.NewPMID(511, 70, 0), "70.*.*"},
		{pcpwire.NewPMID(511, 70, 3), "511.70.3"},
		{pcpwire.PMIDNull, "PM_ID_NULL"},
		{pcpwire.NewPMID(512+1, 4096+2, 1024+3), "1.2.3"},
	}
	for _, tt := range tests {
		if got := tt.pmid.String(); got != tt.want {
			t.Errorf("%#x: %q, want %q", uint32(tt.pmid), got, tt.want)
		}
	}
	if p := pcpwire.PMID(0x11813402); p.Domain() != 70 || p.Cluster() != 77 || p.Item() != 2 {
		t.Errorf("%d %d %d", p.Domain(), p.Cluster(), p.Item())
	}
}

func TestInDom(t *testing.T) {
	d := pcpwire.NewInDom(70, 77<<11|5)
	if d != 0x11826805 || d.Domain() != 70 || d.Serial() != 157701 || d.String() != "70.157701" {
		t.Errorf("%#x %v", uint32(d), d)
	}
	if s := pcpwire.InDomNull.String(); s != "PM_INDOM_NULL" {
		t.Error(s)
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		pcpwire.PDUError.String():           "ERROR",
		pcpwire.PDUControlReq.String():      "CONTROL_REQ",
		pcpwire.PDUCreds.String():           "CREDS",
		pcpwire.PDULabel.String():           "LABEL",
		pcpwire.PDUDescs.String():           "DESCS",
		pcpwire.PDUType(0x700b).String():    "TYPE-0x700b",
		pcpwire.PDUType(0x7018).String():    "TYPE-0x7018",
		pcpwire.PDUType(0).String():         "TYPE-0x0",
		pcpwire.TypeNoSupport.String():      "NO_SUPPORT",
		pcpwire.TypeI32.String():            "32",
		pcpwire.TypeHighResEvent.String():   "HIGHRES_EVENT",
		pcpwire.TypeUnknown.String():        "UNKNOWN",
		pcpwire.SemCounter.String():         "counter",
		pcpwire.SemInstant.String():         "instant",
		pcpwire.SemDiscrete.String():        "discrete",
		pcpwire.Semantics(2).String() + "2": "???2",
		pcpwire.Type(11).String() + "11":    "???11",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestHasReply has the PDUs that pmcd sends, and whether it waits for an answer.
func TestHasReply(t *testing.T) {
	for typ := pcpwire.PDUError; typ <= pcpwire.PDUDescs; typ++ {
		want := false
		switch typ {
		case 0x7001, 0x7003, 0x7004, 0x7006, 0x7008, 0x700d, 0x700e, 0x700f, 0x7010, 0x7012:
			want = true
		default:
		}
		if got := typ.HasReply(); got != want {
			t.Errorf("%v: %v", typ, got)
		}
	}
}

func TestCredsVersion(t *testing.T) {
	c := pcpwire.Creds{Credentials: []pcpwire.Credential{{Type: 9, Version: 7, Flags: 8}, {Type: 1, Version: 2, Flags: 4}}}
	if v, flags, ok := c.Version(); v != 2 || flags != 4 || !ok {
		t.Errorf("%d, %#x, %v", v, flags, ok)
	}
	c.Credentials = c.Credentials[:1]
	if v, flags, ok := c.Version(); v != 0 || flags != 0 || ok {
		t.Errorf("%d, %#x, %v", v, flags, ok)
	}
}

func TestDecodeError(t *testing.T) {
	err := new(pcpwire.Fetch).Decode([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9})
	if !errors.Is(err, pcpwire.ErrShort) {
		t.Errorf("%v is not ErrShort", err)
	}
	const want = "FETCH: numpmid at byte 24: ends too early"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
