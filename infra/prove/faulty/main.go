// Command faulty is a version of GetSyncJobFunction that make prove deploys behind
// a canary, to see it rolled back: it answers with no proxy response where the path
// ends in "malformed", and ends in the middle of any other request.
package main

import (
	"context"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(_ context.Context, event struct {
		Path string `json:"path"`
	},
	) (string, error) {
		if !strings.HasSuffix(event.Path, "/malformed") {
			os.Exit(1)
		}
		return "no proxy response", nil
	})
}
