// Command faulty is a version of GetSyncJobFunction that ends in the middle of every
// request. `make prove` deploys it behind a canary, and expects its rollback.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(context.Context) error {
		os.Exit(1)
		return nil
	})
}
