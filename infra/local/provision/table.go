package provision

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/local/template"
)

const (
	// activeTime bounds the wait for a table that is made or deleted.
	activeTime = 30 * time.Second
	pollEvery  = 50 * time.Millisecond
)

// table has the properties that requests depend on.
type table struct {
	AttributeDefinitions    []types.AttributeDefinition
	KeySchema               []types.KeySchemaElement
	TimeToLiveSpecification *types.TimeToLiveSpecification
}

func (p *provisioner) table(ctx context.Context, t template.Resource[table]) error {
	name := aws.String(template.StackName + "-" + t.ID)
	arn, err := p.activeTable(ctx, t, &dynamodb.DescribeTableInput{TableName: name})
	if err == nil {
		err = p.readable(ctx, name)
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", *name, err)
	}
	if err := p.expiry(ctx, name, t.Properties.TimeToLiveSpecification); err != nil {
		return fmt.Errorf("TTL of table %s: %w", *name, err)
	}
	p.done(t.ID, template.Attributes{"Ref": *name, "Arn": arn})
	return nil
}

// activeTable makes the table if it does not exist, waits until it is active, and returns
// its ARN.
func (p *provisioner) activeTable(ctx context.Context, t template.Resource[table], it *dynamodb.DescribeTableInput) (string, error) {
	found, err := p.db.DescribeTable(ctx, it)
	if err == nil && found.Table.TableStatus == types.TableStatusCreating && p.existing[t.ID] == "" {
		err = p.remove(ctx, it)
	}
	missing, err := p.mustMake(t.ID, err)
	if missing {
		_, err = p.db.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: it.TableName, BillingMode: types.BillingModePayPerRequest,
			KeySchema: t.Properties.KeySchema, AttributeDefinitions: t.Properties.AttributeDefinitions,
		})
	}
	if err != nil {
		return "", err
	}
	active, err := dynamodb.NewTableExistsWaiter(p.db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = pollEvery, 5*pollEvery
	}).WaitForOutput(ctx, it, activeTime)
	if err != nil {
		return "", err
	}
	return aws.ToString(active.Table.TableArn), nil
}

// remove deletes a table if the local server was killed while the table was being created, before
// it served requests: ExtendDB never finishes such a table. It returns DynamoDB's answer
// that the table does not exist.
func (p *provisioner) remove(ctx context.Context, it *dynamodb.DescribeTableInput) error {
	if _, err := p.db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: it.TableName}); err != nil {
		return err
	}
	if err := dynamodb.NewTableNotExistsWaiter(p.db, func(o *dynamodb.TableNotExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = pollEvery, 5*pollEvery
	}).Wait(ctx, it, activeTime); err != nil {
		return err
	}
	_, err := p.db.DescribeTable(ctx, it)
	return err
}

// readable reads the table for at most two seconds, because an engine may notice a damaged file
// only at a read.
func (p *provisioner) readable(ctx context.Context, name *string) error {
	bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	pages := dynamodb.NewScanPaginator(p.db, &dynamodb.ScanInput{
		TableName: name, Select: types.SelectCount, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	for pages.HasMorePages() {
		_, err := pages.NextPage(bounded)
		if bounded.Err() != nil {
			return ctx.Err() // the time is up
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expiry turns TTL on. On AWS a change of the attribute takes an hour, and further changes
// are refused until then.
func (p *provisioner) expiry(ctx context.Context, name *string, wanted *types.TimeToLiveSpecification) error {
	if wanted == nil {
		return nil
	}
	now, err := p.db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: name})
	if err != nil {
		return err
	}
	if d := now.TimeToLiveDescription; d != nil && aws.ToString(d.AttributeName) == *wanted.AttributeName {
		return nil
	}
	_, err = p.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: name, TimeToLiveSpecification: wanted})
	return err
}
