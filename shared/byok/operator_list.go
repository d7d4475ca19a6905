//go:build !lambda

package byok

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/shared/ids"
)

// ReadSettings reads the credentials of a workspace as ReadAll does, in the order
// of List, without their sealed keys.
func (m *Manager) ReadSettings(ctx context.Context, account ids.Account, w ids.Workspace) ([]Credential, error) {
	return m.settings(ctx, account, w, true)
}

// List lists the credentials of the workspace by provider and sort order, including
// incomplete ones. It returns ErrUnreadable if one cannot be decoded. A missing
// workspace has none.
func (m *Manager) List(ctx context.Context, w ids.Workspace) ([]Credential, error) {
	return m.settings(ctx, "", w, false)
}

// shown are the attributes that a list reads: all of a row but its seal.
func shown() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[item]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("dynamodbav"), ","); !f.Anonymous && name != "seal" {
			names = append(names, name)
		}
	}
	return names
}

func (m *Manager) settings(ctx context.Context, account ids.Account, w ids.Workspace, strict bool) ([]Credential, error) {
	in := queryOf(m.table, w)
	projection, names := project(shown()...)
	in.ProjectionExpression, in.ExpressionAttributeNames = &projection, names
	rows, err := readRows(ctx, m.db, in, account, w, strict)
	if err != nil {
		return nil, err
	}
	credentials := make([]Credential, len(rows))
	for i, row := range rows {
		credentials[i] = row.credential()
	}
	// The order in which they are tried.
	slices.SortFunc(credentials, func(a, b Credential) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.SortOrder, b.SortOrder))
	})
	return credentials, nil
}

// ListAll lists the credentials of all workspaces, by workspace, and counts the rows
// that cannot be read. It scans the whole table, so its cost grows with the table.
func (m *Manager) ListAll(ctx context.Context) (all []Credential, unreadable int, err error) {
	for rows, err := range scan(ctx, m.db, &dynamodb.ScanInput{TableName: &m.table, Limit: aws.Int32(surveyPage)}, shown()...) {
		if err != nil {
			return nil, 0, err
		}
		for _, row := range rows {
			if row.readable {
				all = append(all, row.credential())
			} else {
				unreadable++
			}
		}
	}
	slices.SortFunc(all, func(a, b Credential) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.SortOrder, b.SortOrder))
	})
	return all, unreadable, nil
}

// AlwaysReadable is a number of credentials that a router always reads: the largest row takes
// 72 KB.
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
