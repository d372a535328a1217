// etcd's own lock recipe (client/v3/concurrency) over gRPC, as a peer for cluster.py, which builds it. One session and one
// lock per worker (cycle), or one lock that all want (handoff). Prints one line of JSON.
//
//	etcd_lock -endpoints http://127.0.0.1:2379 -workload cycle -clients 64 -seconds 2
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "etcd_lock:", err)
	os.Exit(69)
}

func main() {
	endpoints := flag.String("endpoints", "", "URLs of etcd, with commas")
	workload := flag.String("workload", "cycle", "cycle or handoff")
	clients := flag.Int("clients", 1, "workers")
	seconds := flag.Float64("seconds", 1, "how long to measure")
	warmup := flag.Float64("warmup", 0.2, "how long to run before")
	flag.Parse()

	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(*endpoints, ","), DialTimeout: 5 * time.Second})
	if err != nil {
		fail(err)
	}
	defer client.Close()
	var measuring, stopping atomic.Bool
	times := make([][]time.Duration, *clients)
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for worker := range *clients {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
			if err != nil {
				fail(err)
			}
			defer session.Close()
			name := fmt.Sprintf("bench/%d/%d", os.Getpid(), worker)
			if *workload == "handoff" {
				name = fmt.Sprintf("bench/%d/all", os.Getpid())
			}
			mutex := concurrency.NewMutex(session, name)
			ready.Done()
			<-begin
			for !stopping.Load() {
				began := time.Now()
				if err := mutex.Lock(context.Background()); err != nil {
					fail(err)
				}
				if err := mutex.Unlock(context.Background()); err != nil {
					fail(err)
				}
				if measuring.Load() {
					times[worker] = append(times[worker], time.Since(began))
				}
			}
		}()
	}
	ready.Wait()
	close(begin)
	time.Sleep(time.Duration(*warmup * float64(time.Second)))
	measuring.Store(true)
	began := time.Now()
	time.Sleep(time.Duration(*seconds * float64(time.Second)))
	measuring.Store(false)
	elapsed := time.Since(began)
	stopping.Store(true)
	done.Wait()

	var all []time.Duration
	for _, some := range times {
		all = append(all, some...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	at := func(part float64) float64 {
		if len(all) == 0 {
			return 0
		}
		return float64(all[int(part*float64(len(all)-1))].Microseconds())
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"operations": len(all), "elapsed_s": elapsed.Seconds(),
		"rate": float64(len(all)) / elapsed.Seconds(), "p50_us": at(0.5), "p99_us": at(0.99)})
}
