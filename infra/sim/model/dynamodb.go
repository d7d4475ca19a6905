package model

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

const dynamoDBTarget = "DynamoDB_20120810."

// AWS's bounds, from the developer guide of DynamoDB.
const (
	maxItem        = 400 << 10
	maxPK          = 2048
	maxSK          = 1024
	maxPage        = 1 << 20
	maxBatchGet    = 100
	maxBatchWrite  = 25
	maxTransaction = 100
	// tokenLife is how long DynamoDB remembers the token of a transaction.
	tokenLife = 10 * time.Minute
	// readUnit is how many bytes a strongly consistent read gets for a unit of capacity.
	readUnit = 4096
)

type table struct {
	TableSchema
	items map[primaryKey]Item
}

// primaryKey is the key of an item. Its sort key is "" if the table has none.
type primaryKey struct{ pk, sk string }

func (w *World) table(name string) (*table, error) {
	t, ok := w.tables[name]
	if !ok {
		return nil, refusal("ResourceNotFoundException", "Requested resource not found")
	}
	return t, nil
}

// attributes returns the names of the key attributes.
func (t *table) attributes() []string {
	if t.SK == "" {
		return []string{t.PK}
	}
	return []string{t.PK, t.SK}
}

// errEmptyKey fails a whole transaction. Any other key that does not fit the table is the
// cancellation reason of its item.
var errEmptyKey = invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value")

// keyOf reads the primary key of an item.
func (t *table) keyOf(i wire) (primaryKey, error) {
	var values [2]string
	for n, name := range t.attributes() {
		switch values[n] = textOf(i[name]); {
		case typeOf(i[name]) != "S":
			return primaryKey{}, invalid("One or more parameter values were invalid: Missing the key %s in the item, or type mismatch", name)
		case values[n] == "":
			return primaryKey{}, errEmptyKey
		}
	}
	if len(values[0]) > maxPK || len(values[1]) > maxSK {
		return primaryKey{}, invalid("One or more parameter values were invalid: Size of hashkey or of range key has exceeded the maximum size limit")
	}
	return primaryKey{values[0], values[1]}, nil
}

// key reads a primary key, which has no other attributes.
func (t *table) key(i wire) (primaryKey, error) {
	if len(i) != len(t.attributes()) {
		return primaryKey{}, invalid("The provided key element does not match the schema")
	}
	return t.keyOf(i)
}

// sorted returns the keys of all items in the order in which DynamoDB reads them: by a
// hash of the partition key, then by the sort key.
func (t *table) sorted() []primaryKey {
	hash := func(k primaryKey) []byte { sum := sha256.Sum256([]byte(k.pk)); return sum[:] }
	return slices.SortedFunc(maps.Keys(t.items), func(a, b primaryKey) int {
		return cmp.Or(bytes.Compare(hash(a), hash(b)), strings.Compare(a.sk, b.sk))
	})
}

// input has every member that a request for items of one table may have.
type input struct {
	TableName                           string
	Item, Key                           wire
	Keys                                []wire
	ConsistentRead                      bool
	ConditionExpression                 *string
	UpdateExpression                    *string
	KeyConditionExpression              *string
	FilterExpression                    *string
	ProjectionExpression                *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           wire
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string
	Limit                               *int
	Select, ReturnConsumedCapacity      string
}

// request is an input with its table and expressions.
type request struct {
	input
	table                   *table
	condition, keys, filter *node
	actions                 []action
	paths                   []path
}

func (w *World) read(in input) (*request, error) {
	r := &request{input: in}
	places := &placeholders{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, used: map[string]bool{}}
	var errs [6]error
	r.actions, errs[0] = parse("UpdateExpression", in.UpdateExpression, places, (*parser).update)
	r.condition, errs[1] = parse("ConditionExpression", in.ConditionExpression, places, (*parser).condition)
	r.keys, errs[2] = parse("KeyConditionExpression", in.KeyConditionExpression, places, (*parser).condition)
	r.filter, errs[3] = parse("FilterExpression", in.FilterExpression, places, (*parser).condition)
	r.paths, errs[4] = parse("ProjectionExpression", in.ProjectionExpression, places, (*parser).projection)
	errs[5] = places.check()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	var err error
	r.table, err = w.table(in.TableName)
	return r, err
}

func (w *World) getItem(in input) (any, error) {
	in.Keys = []wire{in.Key}
	items, err := w.get(in)
	if err != nil || len(items) == 0 {
		return object{}, err
	}
	return object{"Item": items[0]}, nil
}

// get reads items of a table.
func (w *World) get(in input) (items []wire, err error) {
	r, err := w.read(in)
	if err != nil {
		return nil, err
	}
	seen := map[primaryKey]bool{}
	for _, k := range in.Keys {
		key, err := r.table.key(k)
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, invalid("Provided list of item keys contains duplicates")
		}
		seen[key] = true
		if item, ok := r.table.items[key]; ok {
			items = append(items, wire(project(item, r.paths)))
		}
	}
	return items, nil
}

func (w *World) batchGetItem(in struct{ RequestItems map[string]input }) (any, error) {
	count, responses := 0, map[string][]wire{}
	for name, reads := range in.RequestItems {
		reads.TableName = name
		items, err := w.get(reads)
		if err != nil {
			return nil, err
		}
		responses[name] = append([]wire{}, items...)
		count += len(reads.Keys)
	}
	if count == 0 || count > maxBatchGet {
		return nil, invalid("Too many items requested for the BatchGetItem call, or none")
	}
	return object{"Responses": responses, "UnprocessedKeys": object{}}, nil
}

// batchWrite is the input of BatchWriteItem. Only deletions are modelled.
type batchWrite struct {
	RequestItems map[string][]struct{ DeleteRequest struct{ Key wire } }
}

func (w *World) batchWriteItem(in batchWrite) (any, error) {
	deleted := map[*table]map[primaryKey]bool{}
	count := 0
	for name, requests := range in.RequestItems {
		t, err := w.table(name)
		if err != nil {
			return nil, err
		}
		deleted[t] = map[primaryKey]bool{}
		for _, one := range requests {
			key, err := t.key(one.DeleteRequest.Key)
			if err != nil {
				return nil, err
			}
			deleted[t][key] = true
			count++
		}
		if len(deleted[t]) < len(requests) {
			return nil, invalid("Provided list of item keys contains duplicates")
		}
	}
	if count == 0 || count > maxBatchWrite {
		return nil, invalid("Too many items requested for the BatchWriteItem call, or none")
	}
	for t, keys := range deleted {
		for key := range keys {
			delete(t.items, key)
		}
	}
	return object{"UnprocessedItems": object{}}, nil
}

// query reads items with a partition key.
func (w *World) query(in input) (any, error) {
	r, err := w.read(in)
	if err != nil {
		return nil, err
	}
	if in.FilterExpression != nil || r.keys == nil {
		return nil, notModelled("a Query with a filter, or without a key condition")
	}
	pk, prefix, ok := r.keys.partition(r.table.TableSchema)
	if !ok {
		return nil, notModelled("the key condition %q", *in.KeyConditionExpression)
	}
	keys := slices.DeleteFunc(r.table.sorted(), func(k primaryKey) bool { return k.pk != pk || !strings.HasPrefix(k.sk, prefix) })
	return r.page(keys)
}

// partition returns the partition key and the prefix of the sort key that a key condition
// requires. The condition must be pk = :a, or pk = :a AND begins_with(sk, :b).
func (n *node) partition(t TableSchema) (pk, prefix string, ok bool) {
	if n.operator == "AND" {
		if prefix, ok = n.operands[1].text("begins_with", t.SK); !ok {
			return "", "", false
		}
		n = n.operands[0]
	}
	pk, ok = n.text("=", t.PK)
	return pk, prefix, ok
}

// text returns the text of an expression that compares the attribute with a text.
func (n *node) text(operator, attribute string) (text string, ok bool) {
	if n.operator == operator && slices.Equal(n.operands[0].path, path{attribute}) {
		text = textOf(n.operands[1].value)
	}
	return text, text != ""
}

func (w *World) scan(in input) (any, error) {
	r, err := w.read(in)
	if err != nil {
		return nil, err
	}
	return r.page(r.table.sorted())
}

// page reads items. The model has one page for each read.
func (r *request) page(keys []primaryKey) (any, error) {
	items, size := []wire{}, 0
	for _, key := range keys {
		item := r.table.items[key]
		size += sizeOf(item)
		if r.filter.holds(item) {
			items = append(items, wire(project(item, r.paths)))
		}
	}
	if r.Limit != nil && len(keys) >= *r.Limit || size > maxPage {
		return nil, notModelled("a second page of a read")
	}
	out := object{"Count": len(items), "ScannedCount": len(keys)}
	switch r.Select {
	case "":
		out["Items"] = items
	case "COUNT":
	default:
		return nil, notModelled("Select %s", r.Select)
	}
	if r.ReturnConsumedCapacity != "" {
		units := float64(max(1, (size+readUnit-1)/readUnit))
		if !r.ConsistentRead {
			units /= 2
		}
		out["ConsumedCapacity"] = object{"TableName": r.table.Name, "CapacityUnits": units}
	}
	return out, nil
}

// write is one write: a whole request, or an item of a transaction.
type write struct {
	*request
	kind   string // PutItem, UpdateItem, DeleteItem, or ConditionCheck
	key    primaryKey
	misfit error // what does not fit the table
}

// prepare checks the parts of a write that do not depend on the stored item.
func (w *World) prepare(kind string, in input) (*write, error) {
	r, err := w.read(in)
	if err != nil {
		return nil, err
	}
	p := &write{request: r, kind: kind}
	if kind == "PutItem" {
		p.key, p.misfit = r.table.keyOf(in.Item)
	} else {
		p.key, p.misfit = r.table.key(in.Key)
	}
	for _, a := range r.actions {
		if slices.Contains(r.table.attributes(), a.path[0]) {
			p.misfit = invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", a.path[0])
		}
	}
	if errors.Is(p.misfit, errEmptyKey) {
		return nil, p.misfit
	}
	return p, nil
}

// try returns the item after the write, nil for none. It changes nothing.
func (p *write) try() (item Item, err error) {
	old := p.table.items[p.key]
	switch {
	case p.misfit != nil:
		return nil, p.misfit
	case !p.condition.holds(old):
		failed := refusal("ConditionalCheckFailedException", "The conditional request failed")
		if p.ReturnValuesOnConditionCheckFailure == "ALL_OLD" && old != nil {
			failed.Members = object{"Item": wire(old)}
		}
		return nil, failed
	}
	switch p.kind {
	case "PutItem":
		item = Item(p.Item)
	case "UpdateItem":
		if old == nil {
			old = Item(p.Key)
		}
		item, err = apply(p.actions, old)
	case "ConditionCheck":
		item = old
	}
	if err == nil && sizeOf(item) > maxItem {
		err = invalid("Item size has exceeded the maximum allowed size")
	}
	return item, err
}

// commit stores the item, or removes it if it is nil.
func (p *write) commit(item Item) {
	if item == nil {
		delete(p.table.items, p.key)
	} else {
		p.table.items[p.key] = item
	}
}

// single is an operation that makes one write.
func single(kind string) func(*World, input) (any, error) {
	return func(w *World, in input) (any, error) {
		p, err := w.prepare(kind, in)
		if err != nil {
			return nil, err
		}
		updated := kind == "UpdateItem" && in.ReturnValues == "UPDATED_NEW"
		if in.ReturnValues != "" && in.ReturnValues != "NONE" && !updated {
			return nil, notModelled("ReturnValues %s of a %s", in.ReturnValues, kind)
		}
		item, err := p.try()
		if err != nil {
			return nil, err
		}
		p.commit(item)
		if returned := project(item, pathsOf(p.actions)); updated && len(returned) > 0 {
			return object{"Attributes": wire(returned)}, nil
		}
		return object{}, nil
	}
}

// remembered is a transaction that was applied.
type remembered struct {
	items []map[string]input
	until time.Time
}

// writeKinds are the kinds of writes by their names in a transaction.
var writeKinds = map[string]string{"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheck"}

func (w *World) transactWriteItems(in struct {
	TransactItems      []map[string]input // each with one write, by its kind
	ClientRequestToken string
}) (any, error) {
	if len(in.TransactItems) == 0 || len(in.TransactItems) > maxTransaction {
		return nil, invalid("Value at 'transactItems' failed to satisfy constraint: Member must have length from 1 to 100")
	}
	var all []*write
	for _, item := range in.TransactItems {
		for kind, one := range item {
			p, err := w.prepare(writeKinds[kind], one)
			if err != nil {
				return nil, err
			}
			for _, other := range all {
				if p.misfit == nil && p.table == other.table && p.key == other.key {
					return nil, invalid("Transaction request cannot include multiple operations on one item")
				}
			}
			all = append(all, p)
		}
	}
	if earlier, ok := w.tokens[in.ClientRequestToken]; ok && time.Now().Before(earlier.until) {
		if !reflect.DeepEqual(earlier.items, in.TransactItems) {
			return nil, refusal("IdempotentParameterMismatchException", "The provided client token was used with different parameters")
		}
		return object{}, nil
	}
	if err := commitAll(all); err != nil {
		return nil, err
	}
	if in.ClientRequestToken != "" {
		w.tokens[in.ClientRequestToken] = remembered{in.TransactItems, time.Now().Add(tokenLife)}
	}
	return object{}, nil
}

// commitAll makes all the writes or none.
func commitAll(all []*write) error {
	items, reasons, failed := make([]Item, len(all)), make([]object, len(all)), false
	for i, p := range all {
		var err error
		items[i], err = p.try()
		reasons[i] = object{"Code": "None"}
		if known, ok := errors.AsType[*Error](err); ok {
			failed = true
			reasons[i] = object{"Code": "ValidationError", "Message": known.Message}
			if known.Code == "ConditionalCheckFailedException" {
				reasons[i]["Code"] = "ConditionalCheckFailed"
				maps.Copy(reasons[i], known.Members)
			}
		}
	}
	if failed {
		return Cancelled(reasons...)
	}
	for i, p := range all {
		p.commit(items[i])
	}
	return nil
}

// Cancelled is DynamoDB's error for a transaction that it cancelled, with a reason for
// each of its items. The code of an item that is not at fault is None.
func Cancelled(reasons ...map[string]any) *Error {
	e := refusal("TransactionCanceledException", "Transaction cancelled, please refer cancellation reasons for specific reasons")
	e.Members = object{"CancellationReasons": reasons}
	return e
}

// Items returns all items of a table, in the order of a Scan.
func (w *World) Items(tableName string) (items []Item) {
	t := w.tables[tableName]
	for _, key := range t.sorted() {
		items = append(items, maps.Clone(t.items[key]))
	}
	return items
}

// Item returns the item of a primary key, nil if there is none. sk is "" if the table
// has no sort key.
func (w *World) Item(tableName, pk, sk string) Item {
	return maps.Clone(w.tables[tableName].items[primaryKey{pk, sk}])
}

// PutItem stores an item.
func (w *World) PutItem(tableName string, i Item) {
	t := w.tables[tableName]
	key, err := t.keyOf(i)
	if err != nil {
		panic(err)
	}
	t.items[key] = maps.Clone(i)
}
