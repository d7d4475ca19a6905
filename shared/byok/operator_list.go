//go:build !lambda

package byok

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// ReadSettings reads the credentials of a workspace as ReadAll does, in the order
// of List, without their sealed keys.
func (m *Manager) ReadSettings(ctx context.Context, account ids.Account, w ids.Workspace) ([]Credential, error) {
	rows, err := readPage(ctx, m.db, m.withoutSeals(w), account, w)
	if err != nil {
		return nil, err
	}
	return inOrder(rows), nil
}

// List lists the credentials of the workspace by provider and sort order, including
// incomplete ones. It returns a *calls.Damage if one cannot be decoded. A missing
// workspace has none.
func (m *Manager) List(ctx context.Context, w ids.Workspace) ([]Credential, error) {
	var all []row
	pages := dynamodb.NewQueryPaginator(m.db, m.withoutSeals(w))
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading credentials: %w", err)
		}
		all = append(all, decodeAll(page.Items)...)
	}
	if i := slices.IndexFunc(all, func(r row) bool { return !r.is(decoded) }); i >= 0 {
		return nil, all[i].damage()
	}
	return inOrder(all), nil
}

func (m *Manager) withoutSeals(w ids.Workspace) *dynamodb.QueryInput {
	in := queryOf(m.table, w)
	in.ProjectionExpression, in.ExpressionAttributeNames = project(shown()...)
	return in
}

// inOrder sorts the credentials of a workspace by provider, and then as they are tried.
func inOrder(rows []row) []Credential {
	credentials := make([]Credential, len(rows))
	for i, row := range rows {
		credentials[i] = row.credential()
	}
	slices.SortFunc(credentials, func(a, b Credential) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.SortOrder, b.SortOrder), cmp.Compare(a.ID, b.ID))
	})
	return credentials
}

// Listing is the credentials of all workspaces, by workspace, and the number of damaged
// rows.
type Listing struct {
	Credentials []Credential
	Damaged     int
}

// ListAll scans the whole table, so its cost grows with the table.
func (m *Manager) ListAll(ctx context.Context) (Listing, error) {
	rows, err := readTable(ctx, m.db, m.table)
	if err != nil {
		return Listing{}, err
	}
	credible := slices.DeleteFunc(rows, func(r row) bool { return !r.is(sound) })
	credentials := inOrder(credible)
	slices.SortStableFunc(credentials, func(a, b Credential) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Workspace, b.Workspace))
	})
	return Listing{credentials, len(rows) - len(credible)}, nil
}

// Surveyed is a row of the credentials table. If it is damaged, or lacks an attribute that
// a router needs, only Workspace and ID are certain.
type Surveyed struct {
	Credential
	Damaged bool
	Newer   bool // a newer version of this service wrote it
}

// Survey reads every row of the credentials table, without its seal. It changes nothing.
func Survey(ctx context.Context, db dynamodb.ScanAPIClient, table string) ([]Surveyed, error) {
	rows, err := readTable(ctx, db, table)
	if err != nil {
		return nil, err
	}
	all := make([]Surveyed, len(rows))
	for i, row := range rows {
		all[i] = Surveyed{row.credential(), !row.is(whole), row.newer}
		all[i].Workspace, all[i].ID = row.ids()
	}
	return all, nil
}

// scanPage is how many rows one Scan reads at most; DynamoDB ends a page at 1 MB.
const scanPage = 500

// readTable reads all rows of the table without their seals.
func readTable(ctx context.Context, db dynamodb.ScanAPIClient, table string) ([]row, error) {
	var all []row
	for rows, err := range scan(ctx, db, &dynamodb.ScanInput{TableName: &table, Limit: aws.Int32(scanPage)}, shown()...) {
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// scan yields these attributes of all rows of the table, page by page, strongly
// consistent. It ends after an error.
func scan(ctx context.Context, db dynamodb.ScanAPIClient, in *dynamodb.ScanInput, attributes ...string) iter.Seq2[[]row, error] {
	in.ConsistentRead = aws.Bool(true)
	in.ProjectionExpression, in.ExpressionAttributeNames = project(attributes...)
	return func(yield func([]row, error) bool) {
		pages := dynamodb.NewScanPaginator(db, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("reading table %s: %w", *in.TableName, err))
				return
			}
			if !yield(decodeAll(page.Items), nil) {
				return
			}
		}
	}
}

// ids are the workspace and the id in the row's key.
func (i item) ids() (ids.Workspace, ids.Credential) {
	return ids.Workspace(strings.TrimPrefix(i.PK, partition(""))), ids.Credential(strings.TrimPrefix(i.SK, sortKey("")))
}

// shown are the attributes that a list reads: all of a row but its seal.
func shown() []string {
	attributes := calls.Encode(item{})
	delete(attributes, "seal")
	return slices.Sorted(maps.Keys(attributes))
}

// project makes the projection of these attributes. A "." separates the parts of a path. Some
// names are reserved words of DynamoDB, so each part has an alias.
func project(paths ...string) (*string, map[string]string) {
	names := map[string]string{}
	for _, path := range paths {
		for part := range strings.SplitSeq(path, ".") {
			names["#"+part] = part
		}
	}
	return new("#" + strings.ReplaceAll(strings.Join(paths, ", #"), ".", ".#")), names
}

// ByName yields each setting under its name in the API.
func (s Settings) ByName() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for field, value := range reflect.ValueOf(s).Fields() {
			if !yield(field.Tag.Get("json"), value.Interface()) {
				return
			}
		}
	}
}

// AlwaysReadable is a number of credentials that a router always reads. The largest row takes
// 72 KB, because the body of a request has at most 64 KB.
const AlwaysReadable = 14

// CheckSize returns ErrTooMany for a workspace that a router refuses because its credentials
// take more than a page.
func (m *Manager) CheckSize(ctx context.Context, w ids.Workspace) error {
	page, err := count(ctx, m.db, m.table, w)
	if err == nil && page.LastEvaluatedKey != nil {
		err = ErrTooMany
	}
	return err
}
