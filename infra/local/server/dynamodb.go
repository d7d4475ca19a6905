package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/infra/admin/awsclients"
	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/local/state"
)

// elsewhere is a DynamoDB that the local server neither starts nor stops, and that others
// may use as well. A state folder keeps the one that its tables are in.
type elsewhere struct {
	Endpoint string `json:"endpoint"`
	// Prefix begins the names of this state folder's tables, and of no others.
	Prefix string `json:"prefix"`
}

// chooseDynamoDB returns the DynamoDB of the state folder; the zero value is the local server's
// own. A new folder gets the one in the options, or the local server's own.
func chooseDynamoDB(o Options) (elsewhere, error) {
	kept, err := readElsewhere(o.State)
	isKept := kept != elsewhere{} || isUsed(o.State)
	switch {
	case err != nil:
		return kept, err
	case isKept && o.DynamoDB != "" && o.DynamoDB != kept.Endpoint:
		return kept, fmt.Errorf("the state in %s has its tables in %s: %w", o.State, cmp.Or(kept.Endpoint, "a DynamoDB of its own"), errKept)
	case isKept, o.DynamoDB == "":
		return kept, nil
	}
	return elsewhere{o.DynamoDB, "signalbox-" + strings.ToLower(rand.Text()[:8]) + "-"}, nil
}

// errKept is the error of a start with another DynamoDB than that of the state folder.
var errKept = errors.New("leave DYNAMODB out, or begin anew: make reset")

func elsewhereFile(dir string) string { return filepath.Join(dir, "dynamodb.json") }

func readElsewhere(dir string) (e elsewhere, err error) {
	_, err = state.Read(elsewhereFile(dir), &e, func() error {
		if e.Endpoint == "" || e.Prefix == "" {
			return errors.New("it names no DynamoDB")
		}
		return nil
	})
	return e, err
}

// dropTables deletes the tables of the state folder, and no others, if they are in
// another's DynamoDB. Its error names those that are left there.
func dropTables(ctx context.Context, dir string) error {
	e, err := readElsewhere(dir)
	if err != nil || e == (elsewhere{}) {
		return err
	}
	if err := e.drop(ctx); err != nil {
		return fmt.Errorf("the tables %s* are left in the DynamoDB at %s: %w", e.Prefix, e.Endpoint, err)
	}
	return nil
}

func (e elsewhere) drop(ctx context.Context) error {
	db := awsclients.DynamoDB(engines.Elsewhere(e.Endpoint), func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
	for pages := dynamodb.NewListTablesPaginator(db, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, name := range page.TableNames {
			if !strings.HasPrefix(name, e.Prefix) {
				continue
			}
			if _, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
				return err
			}
		}
	}
	return nil
}
