package byok

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// Stored is a credential with its sealed key, as the platform's router reads it.
type Stored struct {
	Credential
	Sealed seal.Sealed
}

// Binding is what the key must have been sealed for: the place at which the
// credential was found.
func (s Stored) Binding() seal.Binding { return s.binding() }

// ReadAll reads the credentials of a workspace with their sealed keys from the
// credentials table of that name, strongly consistent, in one Query for every
// megabyte. A row that cannot be read, or that names another place than its own,
// is ErrUnreadable for the whole workspace: it may hold a flag that forbids what
// the others allow.
func ReadAll(ctx context.Context, db dynamodb.QueryAPIClient, table string, account ids.Account, w ids.Workspace) ([]Stored, error) {
	var all []Stored
	pages := dynamodb.NewQueryPaginator(db, queryOf(table, w))
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading credentials: %w", err)
		}
		for _, stored := range page.Items {
			var row item
			err := attributevalue.UnmarshalMap(stored, &row)
			if err != nil || row.Version != itemVersion || row.Account != account || row.Workspace != w ||
				row.PK != partition(w) || row.SK != sortKey(row.ID) {
				return nil, fmt.Errorf("workspace %s: %w", w, ErrUnreadable)
			}
			all = append(all, Stored{row.credential(), row.sealed()})
		}
	}
	return all, nil
}
