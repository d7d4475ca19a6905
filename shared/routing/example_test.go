package routing_test

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/routing"
)

// A router makes one Reader and reads for each request. send is the router's: it calls
// a provider with this key, or with the platform's if the key is nil.
func Example() {
	_ = func(ctx context.Context, config aws.Config, authorization []string, request routing.Request,
		send func(provider string, key []byte) error,
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
		caller, err := reader.Identify(ctx, bearer)
		if err != nil {
			return err
		}
		reading, err := reader.Read(ctx, caller, request)
		if err != nil {
			return err // no request is served: a flag that forbids it may be unread
		}
		for _, step := range reading.Steps {
			if step.IsShared() {
				err = send(step.Provider, nil)
			} else if key, unopened := reading.Open(ctx, step); unopened != nil {
				return unopened // only a provider's answer moves on to the next step
			} else {
				err = send(step.Provider, key.Reveal())
				key.Wipe()
			}
			if err == nil {
				return nil
			}
		}
		return errors.Join(err, errors.New("refused: no step is left"))
	}
}
