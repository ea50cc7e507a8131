package watch

import (
	"context"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// lines prints samples until there were enough of them, or ctx ends. Counters
// need two: the first is then not printed.
func lines(ctx context.Context, s *sampler, p *plain, samples int) error {
	tick := time.NewTicker(p.m.interval)
	defer tick.Stop()
	for n, first := 0, true; samples == 0 || n < samples; first = false {
		now, err := s.take(time.Now)
		if err != nil {
			return err
		}
		values := !first || p.raw || !now.counters()
		if err := p.sample(now, values); err != nil {
			return err
		}
		if values {
			n++
		}
		if samples > 0 && n >= samples {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// terminal shows samples on a screen until there were enough of them, the user
// has had enough, or ctx ends.
type terminal struct {
	screen  screen
	model   *model
	sampler *sampler
	samples int
	tick    *time.Ticker
	taken   int
}

func (t *terminal) run(ctx context.Context) error {
	if err := t.screen.enter(); err != nil {
		return err
	}
	defer t.screen.leave()
	keys, err := listen(t.screen.in)
	if err != nil {
		return err
	}
	defer keys.close()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	t.tick = time.NewTicker(t.model.interval)
	defer t.tick.Stop()
	if err := t.sample(); err != nil {
		return err
	}
	for {
		if err := t.draw(); err != nil {
			return err
		}
		if t.samples > 0 && t.taken >= t.samples {
			return nil
		}
		select {
		case typed, ok := <-keys.typed:
			if !ok {
				return nil
			}
			if done, err := t.typed(typed); done || err != nil {
				return err
			}
		case <-resized:
			t.screen.shown = nil
		case <-t.tick.C:
			if err := t.sample(); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (t *terminal) sample() error {
	s, err := t.sampler.take(time.Now)
	if err != nil {
		return err
	}
	t.model.take(s)
	if !t.model.paused {
		t.taken++
	}
	return nil
}

func (t *terminal) draw() error {
	t.model.width, t.model.height = t.screen.size()
	return t.screen.draw(t.model.frame())
}

// typed does what keys mean.
func (t *terminal) typed(b []byte) (done bool, err error) {
	for len(b) > 0 {
		k, n := decode(b)
		b = b[n:]
		switch t.model.key(k) {
		case quit:
			return true, nil
		case suspend:
			if err := t.screen.stop(); err != nil {
				return true, err
			}
		case redraw:
			t.screen.shown = nil
		case retime:
			t.tick.Reset(t.model.interval)
		case nothing:
		}
	}
	return false, nil
}
