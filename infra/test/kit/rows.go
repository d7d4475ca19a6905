package kit

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
)

// Row is an item of a table.
type Row = map[string]types.AttributeValue

// Text and Bool are attributes of a row, and TextOf reads one, as the service does.
var Text, Bool, TextOf = calls.Text, calls.Bool, calls.TextOf

// Number is an attribute of a row, a number in decimal.
func Number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// Key is the primary key of a row: the value of pk, and of sk if its table has one.
func Key(pk string, sk ...string) Row {
	key := Row{"pk": Text(pk)}
	if len(sk) > 0 {
		key["sk"] = Text(sk[0])
	}
	return key
}

// keyOf is the primary key of a row.
func keyOf(row Row) Row {
	key := maps.Clone(row)
	maps.DeleteFunc(key, func(name string, _ types.AttributeValue) bool { return name != "pk" && name != "sk" })
	return key
}

// Rows reads and writes a table without the service. A whole row can be given as a
// key.
type Rows struct {
	DB    *dynamodb.Client
	Table string
}

// Get returns the row of the key, nil if there is none.
func (r Rows) Get(t testing.TB, key Row) Row {
	t.Helper()
	out, err := r.DB.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &r.Table, Key: keyOf(key), ConsistentRead: aws.Bool(true)})
	Must(t, err)
	return out.Item
}

// Put stores the row. It replaces a row with the same key.
func (r Rows) Put(t testing.TB, row Row) {
	t.Helper()
	_, err := r.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &r.Table, Item: row})
	Must(t, err)
}

// Change changes the row of the key, which must exist. Its key can be changed too.
func (r Rows) Change(t testing.TB, key Row, change func(Row)) {
	t.Helper()
	row := r.Get(t, key)
	if row == nil {
		t.Fatalf("table %s has no row %s %s", r.Table, TextOf(key, "pk"), TextOf(key, "sk"))
	}
	r.Delete(t, key)
	change(row)
	r.Put(t, row)
}

// Set changes one attribute of the row of the key, which must exist.
func (r Rows) Set(t testing.TB, key Row, attribute string, value types.AttributeValue) {
	t.Helper()
	r.Change(t, key, func(row Row) { row[attribute] = value })
}

// Delete deletes the row of the key, if there is one.
func (r Rows) Delete(t testing.TB, key Row) {
	t.Helper()
	_, err := r.DB.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &r.Table, Key: keyOf(key)})
	Must(t, err)
}

// Become makes the table hold exactly these rows. It writes only differences.
func (r Rows) Become(t testing.TB, rows []Row) {
	t.Helper()
	name := func(row Row) string { return TextOf(row, "pk") + " " + TextOf(row, "sk") }
	there := map[string]Row{}
	for _, row := range r.All(t) {
		there[name(row)] = row
	}
	for _, row := range rows {
		if !reflect.DeepEqual(row, there[name(row)]) {
			r.Put(t, row)
		}
		delete(there, name(row))
	}
	for _, row := range there {
		r.Delete(t, row)
	}
}

// All returns every row of the table. It can be called in a Cleanup.
func (r Rows) All(t testing.TB) (rows []Row) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(r.DB, &dynamodb.ScanInput{
		TableName: &r.Table, ConsistentRead: aws.Bool(true),
		Limit: aws.Int32(500), // without a limit ExtendDB reads the whole rest of the table for each page
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.WithoutCancel(t.Context()))
		Must(t, err)
		rows = append(rows, page.Items...)
	}
	return rows
}

// Damaged is a row that differs from a sound one in one attribute.
type Damaged struct {
	Attribute string
	Value     types.AttributeValue // nil if it is missing
	Row       Row
}

func (d Damaged) String() string { return fmt.Sprintf("%s %T", d.Attribute, d.Value) }

// Damage returns the row without each attribute, and with a value of every type in
// place of each attribute. Its primary key stays.
func Damage(row Row) []Damaged {
	values := []types.AttributeValue{
		nil,
		Text("x"),
		Number("99"),
		&types.AttributeValueMemberB{Value: []byte("x")},
		Bool(true),
		&types.AttributeValueMemberNULL{Value: true},
		&types.AttributeValueMemberSS{Value: []string{"x"}},
		&types.AttributeValueMemberNS{Value: []string{"1"}},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{}},
		&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}},
	}
	var all []Damaged
	for _, name := range slices.Sorted(maps.Keys(row)) {
		if name == "pk" || name == "sk" {
			continue
		}
		for _, value := range values {
			damaged := maps.Clone(row)
			if damaged[name] = value; value == nil {
				delete(damaged, name)
			}
			all = append(all, Damaged{name, value, damaged})
		}
	}
	return all
}
