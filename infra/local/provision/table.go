package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/local/template"
)

const (
	// activeTime bounds the wait for a new table.
	activeTime = 30 * time.Second
	// readTime bounds the read of a table at a start.
	readTime = 2 * time.Second
)

// forget drops all tables from the record if a DynamoDB that the edition did not start kept
// them in memory and has lost them.
func (p *provisioner) forget(ctx context.Context, tables []template.Resource[template.Table]) error {
	if p.prefix == "" {
		return nil
	}
	var gone []string
	for _, t := range tables {
		_, err := p.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(p.tableName(t))})
		if _, missing := errors.AsType[*types.ResourceNotFoundException](err); !missing {
			return err
		}
		if p.existing[t.ID] != "" {
			gone = append(gone, t.ID)
		}
	}
	for _, id := range gone {
		delete(p.existing, id)
	}
	if len(gone) > 0 {
		p.warn("has forgotten the tables; they are made anew, empty")
	}
	return nil
}

func (p *provisioner) tableName(t template.Resource[template.Table]) string {
	return cmp.Or(p.prefix, template.StackName+"-") + t.ID
}

func (p *provisioner) table(ctx context.Context, t template.Resource[template.Table]) error {
	name := p.tableName(t)
	found, err := p.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err == nil && found.Table.TableStatus == types.TableStatusCreating && p.existing[t.ID] == "" {
		if err = p.remove(ctx, name); err == nil {
			found, err = p.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		}
	}
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing) && p.existing[t.ID] != "":
		err = errGone
	case errors.As(err, &missing):
		_, err = p.db.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: types.BillingModePayPerRequest,
			KeySchema: t.Properties.KeySchema, AttributeDefinitions: t.Properties.AttributeDefinitions,
		})
		if err == nil {
			found, err = p.active(ctx, name)
		}
	case err == nil:
		found, err = p.active(ctx, name)
		if err == nil {
			err = p.readable(ctx, name)
		}
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	if err := p.expiry(ctx, name, t.Properties.TimeToLiveSpecification); err != nil {
		return fmt.Errorf("TTL of table %s: %w", name, err)
	}
	p.done(t.ID, template.Attributes{"Ref": name, "Arn": aws.ToString(found.Table.TableArn)})
	return nil
}

// remove deletes a table if the edition was killed while the table was being created, before
// it served requests: ExtendDB never finishes such a table.
func (p *provisioner) remove(ctx context.Context, name string) error {
	if _, err := p.db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
		return err
	}
	waiter := dynamodb.NewTableNotExistsWaiter(p.db, func(o *dynamodb.TableNotExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, 250*time.Millisecond
	})
	return waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, activeTime)
}

func (p *provisioner) active(ctx context.Context, name string) (*dynamodb.DescribeTableOutput, error) {
	waiter := dynamodb.NewTableExistsWaiter(p.db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, 250*time.Millisecond
	})
	return waiter.WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: &name}, activeTime)
}

// readable reads the table for at most readTime, because an engine may notice a damaged file
// only at a read.
func (p *provisioner) readable(ctx context.Context, name string) error {
	bounded, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	pages := dynamodb.NewScanPaginator(p.db, &dynamodb.ScanInput{TableName: &name, Select: types.SelectCount})
	for pages.HasMorePages() {
		if _, err := pages.NextPage(bounded); err != nil && bounded.Err() == nil {
			return err
		} else if err != nil {
			return ctx.Err()
		}
	}
	return nil
}

// expiry turns TTL on. On AWS a change of the attribute takes an hour, and further changes
// are refused until then.
func (p *provisioner) expiry(ctx context.Context, name string, wanted *types.TimeToLiveSpecification) error {
	if wanted == nil {
		return nil
	}
	now, err := p.db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return err
	}
	if d := now.TimeToLiveDescription; d != nil && aws.ToString(d.AttributeName) == *wanted.AttributeName {
		return nil
	}
	_, err = p.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: &name, TimeToLiveSpecification: wanted})
	return err
}
