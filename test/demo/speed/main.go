// A bakery that tells of its work through an MMV file, with the Speed library: one of the two programs of the demo, and
// of the tests. On SIGINT or SIGTERM it removes its file and ends.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/performancecopilot/speed/v4"
)

func main() {
	log.SetFlags(0)
	byHand := flag.Bool("step", false, "bake one loaf per line on standard input and end with it, instead of ten loaves a second")
	flag.Parse()
	if err := run(*byHand); err != nil {
		log.Fatal("bakery: ", err)
	}
}

func run(byHand bool) error {
	ovens, err := speed.NewPCPInstanceDomain("ovens", []string{"stone", "steam"}, "Ovens", "The ovens of the bakery")
	if err != nil {
		return err
	}
	loaves, err := speed.NewPCPCounter(0, "loaves", "Loaves baked", "Loaves of bread baked since the bakery opened")
	if err != nil {
		return err
	}
	heat, err := speed.NewPCPInstanceMetric(speed.Instances{"stone": 240.0, "steam": 180.0}, "oven.heat", ovens,
		speed.DoubleType, speed.InstantSemantics, speed.NewMetricUnit(), "Heat of each oven", "Degrees Celsius, measured at the door")
	if err != nil {
		return err
	}
	busy, err := speed.NewPCPInstanceMetric(speed.Instances{"stone": uint64(0), "steam": uint64(0)}, "oven.busy", ovens,
		speed.Uint64Type, speed.CounterSemantics, speed.MillisecondUnit, "Time that each oven was in use")
	if err != nil {
		return err
	}
	bread, err := speed.NewPCPSingletonMetric("none yet", "bread", speed.StringType, speed.DiscreteSemantics,
		speed.NewMetricUnit(), "Kind of bread baked last")
	if err != nil {
		return err
	}

	client, err := speed.NewPCPClient("bakery")
	if err != nil {
		return err
	}
	for _, m := range []speed.Metric{loaves, heat, busy, bread} {
		if err := client.Register(m); err != nil {
			return err
		}
	}
	speed.EraseFileOnStop = true
	if err := client.Start(); err != nil {
		return err
	}
	defer client.MustStop()
	fmt.Println("ready")

	kinds := []string{"rye", "wheat", "spelt"}
	for range ticks(byHand) {
		loaves.Up()
		n := loaves.Val()
		oven := "stone"
		if n%2 == 0 {
			oven = "steam"
		}
		heat.MustSetInstance(240+float64(n%10)/2, "stone")
		used, err := busy.ValInstance(oven)
		if err != nil {
			return err
		}
		busy.MustSetInstance(used.(uint64)+50, oven)
		bread.MustSet(kinds[n%3])
		if byHand {
			fmt.Println(n)
		}
	}
	return nil
}

// ticks gives something to receive for every loaf to bake, and is closed when it is time to go.
func ticks(byHand bool) <-chan struct{} {
	loaf := make(chan struct{})
	if byHand {
		go func() {
			defer close(loaf)
			for in := bufio.NewScanner(os.Stdin); in.Scan(); {
				loaf <- struct{}{}
			}
		}()
		return loaf
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	clock := time.Tick(100 * time.Millisecond)
	go func() {
		defer close(loaf)
		for {
			select {
			case <-clock:
				loaf <- struct{}{}
			case <-stop:
				return
			}
		}
	}()
	return loaf
}
