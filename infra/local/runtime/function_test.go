package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// TestMain makes the test binary its own Lambda function if there is a Runtime API.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		function()
		return
	}
	m.Run()
}

type request struct {
	Do   string
	Text string
}

type answer struct {
	PID         int
	Text        string
	ARN         string
	Environment []string
	// Remaining is the time to the deadline in milliseconds.
	Remaining int64
	// Together counts the requests that the process handles at this moment.
	Together int32
}

// function is the test function; the request chooses its answer.
func function() {
	if os.Getenv("FAIL_INIT") != "" {
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(3)
	}
	var together atomic.Int32
	lambda.Start(func(ctx context.Context, r request) (answer, error) {
		defer together.Add(-1)
		a := answer{PID: os.Getpid(), Text: r.Text, Environment: os.Environ(), Together: together.Add(1)}
		if deadline, ok := ctx.Deadline(); ok {
			a.Remaining = time.Until(deadline).Milliseconds()
		}
		if lc, ok := lambdacontext.FromContext(ctx); ok {
			a.ARN = lc.InvokedFunctionArn
		}
		switch r.Do {
		case "print":
			fmt.Println("said", r.Text)
		case "fail":
			return a, errors.New(r.Text)
		case "panic":
			panic(r.Text)
		case "exit":
			os.Exit(7)
		case "hang":
			fmt.Println("busy")
			select {}
		case "visit":
			answer, err := http.Get(r.Text)
			if err != nil {
				return a, err
			}
			return a, answer.Body.Close()
		case "grow":
			a.Text = strings.Repeat("x", 7<<20)
		}
		return a, nil
	})
}
