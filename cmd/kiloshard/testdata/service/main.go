// Service is the smallest program that imports router and shards, to be measured.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

func main() {
	c, err := shards.Load("kiloshard.yaml", os.LookupEnv)
	if err != nil {
		panic(err)
	}
	m, err := c.Map()
	if err != nil {
		panic(err)
	}
	r, err := router.New(context.Background(), router.Config{Map: m})
	fmt.Println(r, err)
}
