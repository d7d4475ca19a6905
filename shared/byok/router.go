package byok

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// Stored is a credential with its sealed key, as the platform's router reads it.
type Stored struct {
	Credential
	Sealed seal.Sealed
}

// ReadTime bounds one reading of a workspace. Supersede waits as long before it
// disables a credential, so a reading that missed the new one has ended by then.
const ReadTime = 2 * time.Second

// ReadAll reads the credentials of a workspace with their sealed keys from the
// credentials table, strongly consistent, in one Query and within ReadTime. If one page
// does not hold them all, the error is ErrTooMany. If a row is damaged, the error is its
// *calls.Damage for the whole workspace: the row may hold a flag that restricts the others.
func ReadAll(ctx context.Context, db dynamodb.QueryAPIClient, table string, account ids.Account, w ids.Workspace) ([]Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, ReadTime)
	defer cancel()
	rows, err := readPage(ctx, db, queryOf(table, w), account, w)
	if err != nil {
		return nil, err
	}
	all := make([]Stored, len(rows))
	for i, row := range rows {
		all[i] = Stored{row.credential(), row.Seal}
	}
	return all, nil
}

// readPage reads the page that a query of the workspace finds. It returns ErrTooMany if there
// are more, and a *calls.Damage if a row is not whole, or not of this workspace and account.
func readPage(ctx context.Context, db dynamodb.QueryAPIClient, in *dynamodb.QueryInput, account ids.Account, w ids.Workspace) ([]row, error) {
	page, err := db.Query(ctx, in)
	if err == nil && page.LastEvaluatedKey != nil {
		err = ErrTooMany
	}
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	rows := decodeAll(page.Items)
	for _, row := range rows {
		if !row.is(whole) || row.Account != account || row.Workspace != w {
			return nil, row.damage()
		}
	}
	return rows, nil
}
