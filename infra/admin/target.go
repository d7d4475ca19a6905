package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"signalbox.dev/shared/calls"
)

// target is the service a command works on.
type target struct {
	config  aws.Config
	outputs outputs
	// identity names who AWS takes us for, where it is known.
	identity string
}

// outputs are what a stack tells about itself, by the names of the template.
type outputs struct {
	AccessTableName      string
	CredentialsTableName string
	SyncJobsTableName    string
	FilesBucketName      string
	// SealingKeyArn is the key that new credentials are sealed under,
	// OwnSealingKeyArn the stack's own, if that is another.
	SealingKeyArn    string
	OwnSealingKeyArn string
}

// check refuses outputs of which some are missing.
func (o outputs) check() error {
	for name, value := range map[string]string{
		"AccessTableName": o.AccessTableName, "CredentialsTableName": o.CredentialsTableName,
		"SyncJobsTableName": o.SyncJobsTableName, "FilesBucketName": o.FilesBucketName,
		"SealingKeyArn": o.SealingKeyArn, "OwnSealingKeyArn": o.OwnSealingKeyArn,
	} {
		if value == "" {
			return fmt.Errorf("it has no output %s", name)
		}
	}
	return nil
}

// chooseTarget finds the service that the command line means.
func chooseTarget(ctx context.Context, said commandLine) (target, error) {
	if said.Stack != "" {
		return deployed(ctx, said.Stack, said.Region)
	}
	return local(said.Local)
}

const (
	connectTimeout  = 5 * time.Second
	responseTimeout = 30 * time.Second
)

func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
		WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = responseTimeout })
}

// retryer is the SDK's own, with what it does not retry by itself.
func retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.Retryables = append(o.Retryables, calls.Retryables()...)
	})
}
