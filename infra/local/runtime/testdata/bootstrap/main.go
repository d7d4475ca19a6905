// Command bootstrap is a function that does what its request says.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type request struct {
	Do   string
	Text string
}

type response struct {
	PID         int
	Text        string
	ARN         string
	Environment []string
	// Remaining is the time to the deadline in milliseconds.
	Remaining int64
	// Together counts the requests that the process handles at this moment.
	Together int32
}

func main() {
	if os.Getenv("FAIL_INIT") != "" {
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(3)
	}
	var together atomic.Int32
	lambda.Start(func(ctx context.Context, r request) (response, error) {
		defer together.Add(-1)
		answer := response{PID: os.Getpid(), Text: r.Text, Environment: os.Environ(), Together: together.Add(1)}
		if deadline, ok := ctx.Deadline(); ok {
			answer.Remaining = time.Until(deadline).Milliseconds()
		}
		if lc, ok := lambdacontext.FromContext(ctx); ok {
			answer.ARN = lc.InvokedFunctionArn
		}
		switch r.Do {
		case "print":
			fmt.Println("said", r.Text)
		case "fail":
			return answer, errors.New(r.Text)
		case "panic":
			panic(r.Text)
		case "exit":
			os.Exit(7)
		case "hang":
			select {}
		case "wait":
			<-time.After(50 * time.Millisecond)
		case "grow":
			answer.Text = strings.Repeat("x", 7<<20)
		}
		return answer, nil
	})
}
