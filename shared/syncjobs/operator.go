//go:build !lambda

package syncjobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// Lister lists jobs, for the operator's command.
type Lister struct {
	db    dynamodb.ScanAPIClient
	table string
}

// NewLister lists the jobs of the table.
func NewLister(db dynamodb.ScanAPIClient, table string) *Lister { return &Lister{db: db, table: table} }

// Listed is one entry of a listing.
type Listed struct {
	Job

	Account ids.Account
	// Damage says what is wrong with a damaged row.
	Damage error
}

// List lists the account's jobs, newest first; "" means those of all accounts. It scans the whole table, so its
// cost grows with the table: no request needs an index by account.
func (l *Lister) List(ctx context.Context, account ids.Account) ([]Listed, error) {
	in := &dynamodb.ScanInput{TableName: &l.table, ConsistentRead: aws.Bool(true)}
	if account != "" {
		in.FilterExpression = aws.String("account = :account")
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":account": calls.Text(string(account))}
	}
	pages := dynamodb.NewScanPaginator(l.db, in)
	var jobs []Listed
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing sync jobs: %w", err)
		}
		for _, stored := range page.Items {
			row, damage := read(stored)
			id := ids.Job(strings.TrimPrefix(row.PK, jobPrefix))
			job := Job{ID: id}
			if damage == nil {
				job = row.job(id)
			}
			jobs = append(jobs, Listed{Job: job, Account: row.Account, Damage: damage})
		}
	}
	slices.SortFunc(jobs, func(a, b Listed) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return jobs, nil
}
