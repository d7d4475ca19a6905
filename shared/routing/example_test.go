package routing_test

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/routing"
	"signalbox.dev/shared/secret"
)

// A router makes one Reader and reads for each attempt. send is the router's: it calls a
// provider with this key, or with the platform's if the key is nil, and reports whether
// the answer moves the request on.
func Example() {
	_ = func(ctx context.Context, config aws.Config, authorization []string, request routing.Request,
		send func(provider string, key []byte) (movesOn bool, err error),
	) error {
		reader, err := routing.NewReader(dynamodb.NewFromConfig(config), kms.NewFromConfig(config), routing.Config{
			AccessTable:      "the output AccessTableName",
			CredentialsTable: "the output CredentialsTableName",
			SealingKeyARNs:   []string{"the output SealingKeyArn"},
		})
		if err != nil {
			return err
		}
		defer reader.Close()

		bearer, err := auth.ParseBearer(authorization)
		if err != nil {
			return err
		}
		made, err := reader.Read(ctx, bearer.Hash(), request)
		if err != nil {
			return err // no request is served: a flag that forbids it may be unread
		}
		reading := made
		for n := range made.Steps {
			if n > 0 { // each attempt is decided by the rows as they are then
				if reading, err = reader.Read(ctx, bearer.Hash(), request); err != nil {
					return err
				}
			}
			step, ok := reading.Next(func(s routing.Step) bool { return slices.Contains(made.Steps[:n], s) })
			if !ok {
				break
			}
			var key secret.Bytes // empty for the shared endpoint
			if !step.IsShared() {
				if key, err = reading.Open(ctx, step); err != nil {
					return err // only a provider's answer moves on to the next step
				}
			}
			movesOn, err := send(step.Provider, key.Reveal())
			key.Wipe()
			if !movesOn {
				return err
			}
		}
		return errors.New("refused: no step is left")
	}
}
