package model

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const dynamoDBTarget = "DynamoDB_20120810"

// dynamoDB are the operations of DynamoDB.
var dynamoDB = map[string]func(*World, []byte) (any, error){
	"GetItem":            call((*World).getItem),
	"PutItem":            call(single(put)),
	"UpdateItem":         call(single(updateItem)),
	"DeleteItem":         call(single(deleteItem)),
	"Query":              call((*World).query),
	"Scan":               call((*World).scan),
	"BatchGetItem":       call((*World).batchGetItem),
	"BatchWriteItem":     call((*World).batchWriteItem),
	"TransactWriteItems": call((*World).transactWriteItems),
}

// AWS's bounds, from the developer guide of DynamoDB.
const (
	maxItem         = 400 << 10
	maxPK           = 2048
	maxSK           = 1024
	maxPage         = 1 << 20
	maxBatchGet     = 100
	maxBatchGetSize = 16 << 20
	maxBatchWrite   = 25
	maxTransaction  = 100
	maxTransactSize = 4 << 20
)

type table struct {
	TableSchema
	items map[primaryKey]Item
}

// primaryKey is the key of an item. Its sort key is "" if the table has none.
type primaryKey struct{ pk, sk string }

func (w *World) table(name string) (*table, error) {
	t, ok := w.tables[name]
	switch {
	case name == "":
		return nil, invalid("1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null")
	case !ok:
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

// key reads a primary key, which has no other attributes.
func (t *table) key(i Item) (primaryKey, error) {
	names := t.attributes()
	if len(i) != len(names) {
		return primaryKey{}, invalid("The provided key element does not match the schema")
	}
	for _, name := range names {
		v, ok := i[name].(*types.AttributeValueMemberS)
		if !ok {
			return primaryKey{}, invalid("The provided key element does not match the schema")
		}
		if v.Value == "" {
			return primaryKey{}, emptyKey(name)
		}
	}
	return t.keyOf(i)
}

// keyOf reads the primary key of a whole item.
func (t *table) keyOf(i Item) (primaryKey, error) {
	var values [2]string
	for n, name := range t.attributes() {
		if i[name] == nil {
			return primaryKey{}, invalid("One or more parameter values were invalid: Missing the key %s in the item", name)
		}
		v, ok := i[name].(*types.AttributeValueMemberS)
		if !ok {
			return primaryKey{}, invalid("One or more parameter values were invalid: Type mismatch for key %s expected: S actual: %s", name, typeOf(i[name]))
		}
		values[n] = v.Value
	}
	switch {
	case len(values[0]) > maxPK:
		return primaryKey{}, invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	case len(values[1]) > maxSK:
		return primaryKey{}, invalid("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	}
	return primaryKey{values[0], values[1]}, nil
}

// keyIn returns the part of an item that is its key.
func (t *table) keyIn(i Item) Item {
	out := Item{}
	for _, name := range t.attributes() {
		out[name] = i[name]
	}
	return out
}

// sorted returns the keys of all items in the order in which DynamoDB reads them: by a
// hash of the partition key, then by the sort key.
func (t *table) sorted() []primaryKey {
	return slices.SortedFunc(maps.Keys(t.items), func(a, b primaryKey) int {
		return cmp.Or(bytes.Compare(hashOf(a.pk), hashOf(b.pk)), strings.Compare(a.sk, b.sk))
	})
}

func hashOf(pk string) []byte {
	sum := sha256.Sum256([]byte(pk))
	return sum[:]
}

// write is one write: a whole request, or a part of a transaction.
type write struct {
	TableName                           string
	Item, Key                           wire
	ConditionExpression                 *string
	UpdateExpression                    *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           map[string]attribute
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string
}

// prepared is a write that is valid, whatever is stored.
type prepared struct {
	table     *table
	key       primaryKey
	condition *node
	actions   []action
	// next returns the item after the write, nil for none.
	next       func(old Item) (Item, error)
	returnsOld bool  // if the condition fails
	misfit     error // what does not fit the table, such as the key
}

// outcome is the effect of a write.
type outcome struct{ old, new Item }

// prepare checks the parts of a write that do not depend on the stored item.
func (w *World) prepare(in write, next func(write, *prepared) error) (*prepared, error) {
	p := &prepared{}
	places := newPlaceholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	var err error
	if p.actions, err = update(in.UpdateExpression, places); err != nil {
		return nil, err
	}
	if p.condition, err = condition("ConditionExpression", in.ConditionExpression, places); err != nil {
		return nil, err
	}
	if err := places.check(); err != nil {
		return nil, err
	}
	switch in.ReturnValuesOnConditionCheckFailure {
	case "", "NONE", "ALL_OLD":
		p.returnsOld = in.ReturnValuesOnConditionCheckFailure == "ALL_OLD"
	default:
		return nil, invalid("Value '%s' at 'returnValuesOnConditionCheckFailure' failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, NONE]", in.ReturnValuesOnConditionCheckFailure)
	}
	if p.table, err = w.table(in.TableName); err != nil {
		return nil, err
	}
	for _, name := range p.table.attributes() {
		for _, i := range []wire{in.Item, in.Key} {
			if equal(i[name], &types.AttributeValueMemberS{}) {
				return nil, emptyKey(name)
			}
		}
	}
	p.misfit = next(in, p)
	return p, nil
}

// emptyKey is the error for an empty key attribute. A key attribute of the wrong type
// is a cancellation reason; this error fails the whole transaction.
func emptyKey(name string) error {
	return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", name)
}

func put(in write, p *prepared) (err error) {
	if in.Key != nil || in.UpdateExpression != nil {
		return notModelled("a put with a key or an update")
	}
	if p.key, err = p.table.keyOf(Item(in.Item)); err != nil {
		return err
	}
	if sizeOf(Item(in.Item)) > maxItem {
		return invalid("Item size has exceeded the maximum allowed size")
	}
	p.next = func(Item) (Item, error) { return Item(in.Item), nil }
	return nil
}

func updateItem(in write, p *prepared) (err error) {
	if in.Item != nil {
		return notModelled("an update with an item")
	}
	for _, a := range p.actions {
		if slices.Contains(p.table.attributes(), a.path[0]) {
			return invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", a.path[0])
		}
	}
	if p.key, err = p.table.key(Item(in.Key)); err != nil {
		return err
	}
	p.next = func(old Item) (Item, error) {
		if old == nil {
			old = Item(in.Key)
		}
		item, err := apply(p.actions, old)
		if err == nil && sizeOf(item) > maxItem {
			err = invalid("Item size to update has exceeded the maximum allowed size")
		}
		return item, err
	}
	return nil
}

func deleteItem(in write, p *prepared) (err error) {
	if in.Item != nil || in.UpdateExpression != nil {
		return notModelled("a deletion with an item or an update")
	}
	p.key, err = p.table.key(Item(in.Key))
	p.next = func(Item) (Item, error) { return nil, nil } //nolint:nilnil // a deletion leaves no item
	return err
}

// conditionCheck is a write of a transaction that changes nothing.
func conditionCheck(in write, p *prepared) (err error) {
	if in.ConditionExpression == nil {
		return invalid("The conditionExpression of a condition check must not be null")
	}
	err = deleteItem(in, p)
	p.next = func(old Item) (Item, error) { return old, nil }
	return err
}

// try returns the effect that the write would have now.
func (p *prepared) try() (outcome, error) {
	if p.misfit != nil {
		return outcome{}, p.misfit
	}
	old := p.table.items[p.key]
	if !p.condition.holds(old) {
		failed := refusal("ConditionalCheckFailedException", "The conditional request failed")
		if p.returnsOld {
			failed.Item = old
		}
		return outcome{}, failed
	}
	next, err := p.next(old)
	return outcome{old, next}, err
}

// commit makes it so.
func (p *prepared) commit(o outcome) {
	if o.new == nil {
		delete(p.table.items, p.key)
	} else {
		p.table.items[p.key] = o.new
	}
}

// single turns one write into an operation.
func single(next func(write, *prepared) error) func(*World, write) (any, error) {
	return func(w *World, in write) (any, error) {
		p, err := w.prepare(in, next)
		if err != nil {
			return nil, err
		}
		isUpdate := in.Item == nil && in.Key != nil && p.actions != nil
		if !isUpdate && in.ReturnValues != "" && in.ReturnValues != "NONE" && in.ReturnValues != "ALL_OLD" {
			return nil, invalid("Return values set to invalid value")
		}
		var paths []path
		for _, a := range p.actions {
			paths = append(paths, a.path)
		}
		o, err := p.try()
		if err != nil {
			return nil, err
		}
		var returned Item
		switch in.ReturnValues {
		case "", "NONE":
		case "ALL_OLD":
			returned = o.old
		case "ALL_NEW":
			returned = o.new
		case "UPDATED_OLD":
			returned = project(o.old, paths)
		case "UPDATED_NEW":
			returned = project(o.new, paths)
		default:
			return nil, invalid("Value '%s' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]", in.ReturnValues)
		}
		p.commit(o)
		if len(returned) == 0 {
			return map[string]any{}, nil
		}
		return map[string]any{"Attributes": wire(returned)}, nil
	}
}

type getItemInput struct {
	TableName                string
	Key                      wire
	ConsistentRead           bool
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
}

func (w *World) getItem(in getItemInput) (any, error) {
	items, _, err := w.get(in.TableName, keysAndAttributes{[]wire{in.Key}, in.ConsistentRead, in.ProjectionExpression, in.ExpressionAttributeNames})
	if err != nil || len(items) == 0 {
		return map[string]any{}, err
	}
	return map[string]any{"Item": items[0]}, nil
}

// keysAndAttributes are the items to read from one table.
type keysAndAttributes struct {
	Keys                     []wire
	ConsistentRead           bool
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
}

// get reads items of a table, and returns their size beside them.
func (w *World) get(name string, in keysAndAttributes) (items []wire, size int, err error) {
	places := newPlaceholders(in.ExpressionAttributeNames, nil)
	paths, err := projection(in.ProjectionExpression, places)
	if err == nil {
		err = places.check()
	}
	if err != nil {
		return nil, 0, err
	}
	t, err := w.table(name)
	if err != nil {
		return nil, 0, err
	}
	seen := map[primaryKey]bool{}
	for _, k := range in.Keys {
		key, err := t.key(Item(k))
		if err != nil {
			return nil, 0, err
		}
		if seen[key] {
			return nil, 0, invalid("Provided list of item keys contains duplicates")
		}
		seen[key] = true
		if item, ok := t.items[key]; ok {
			items = append(items, wire(project(item, paths)))
			size += sizeOf(item)
		}
	}
	return items, size, nil
}

func (w *World) batchGetItem(in struct{ RequestItems map[string]keysAndAttributes }) (any, error) {
	count, total := 0, 0
	for _, keys := range in.RequestItems {
		count += len(keys.Keys)
	}
	if count == 0 {
		return nil, invalid("1 validation error detected: Value at 'requestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}
	if count > maxBatchGet {
		return nil, invalid("Too many items requested for the BatchGetItem call")
	}
	responses := map[string][]wire{}
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		items, size, err := w.get(name, in.RequestItems[name])
		if err != nil {
			return nil, err
		}
		if total += size; total > maxBatchGetSize {
			return nil, notModelled("a BatchGetItem of more than 16 MB")
		}
		responses[name] = append([]wire{}, items...)
	}
	return map[string]any{"Responses": responses, "UnprocessedKeys": map[string]any{}}, nil
}

func (w *World) batchWriteItem(in struct {
	RequestItems map[string][]struct{ PutRequest, DeleteRequest *write }
}) (any, error) {
	var all []*prepared
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		for _, request := range in.RequestItems[name] {
			next, one := deleteItem, request.DeleteRequest
			if request.PutRequest != nil {
				next, one = put, request.PutRequest
			}
			if one == nil || request.PutRequest != nil && request.DeleteRequest != nil {
				return nil, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
			}
			one.TableName = name
			p, err := w.prepare(*one, next)
			if err == nil {
				err = p.misfit
			}
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	if len(all) == 0 || len(all) > maxBatchWrite {
		return nil, invalid("1 validation error detected: Value at 'requestItems' failed to satisfy constraint: Member must have length less than or equal to 25, Member must have length greater than or equal to 1")
	}
	if !distinctItems(all) {
		return nil, invalid("Provided list of item keys contains duplicates")
	}
	for _, p := range all {
		o, err := p.try()
		if err != nil {
			return nil, err
		}
		p.commit(o)
	}
	return map[string]any{"UnprocessedItems": map[string]any{}}, nil
}

// distinctItems reports whether no two writes are to one item.
func distinctItems(all []*prepared) bool {
	for i, a := range all {
		for _, b := range all[:i] {
			if a.misfit == nil && a.table == b.table && a.key == b.key {
				return false
			}
		}
	}
	return true
}

// readInput is that of Query and Scan.
type readInput struct {
	TableName                                                      string
	ConsistentRead                                                 bool
	ScanIndexForward                                               *bool
	Limit                                                          *int
	Segment, TotalSegments                                         *int
	ExclusiveStartKey                                              wire
	KeyConditionExpression, FilterExpression, ProjectionExpression *string
	ExpressionAttributeNames                                       map[string]string
	ExpressionAttributeValues                                      map[string]attribute
	Select, ReturnConsumedCapacity                                 string
}

// read is a Query or Scan that is valid, whatever is stored.
type read struct {
	table  *table
	keys   *node
	filter *node
	paths  []path
	start  *primaryKey
	in     readInput
}

func (w *World) prepareRead(in readInput) (r read, err error) {
	places := newPlaceholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	r.in = in
	switch {
	case in.Select != "" && in.Select != "COUNT":
		return r, notModelled("Select %s", in.Select)
	case in.Select != "" && in.ProjectionExpression != nil:
		return r, invalid("Cannot specify the ProjectionExpression when choosing to get only the Count")
	case in.ReturnConsumedCapacity != "" && in.ReturnConsumedCapacity != "TOTAL":
		return r, notModelled("ReturnConsumedCapacity %s", in.ReturnConsumedCapacity)
	}
	if in.Limit != nil && *in.Limit < 1 {
		return r, invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", *in.Limit)
	}
	if r.paths, err = projection(in.ProjectionExpression, places); err != nil {
		return r, err
	}
	if r.filter, err = condition("FilterExpression", in.FilterExpression, places); err != nil {
		return r, err
	}
	if r.keys, err = condition("KeyConditionExpression", in.KeyConditionExpression, places); err != nil {
		return r, err
	}
	if err := places.check(); err != nil {
		return r, err
	}
	if r.table, err = w.table(in.TableName); err != nil || in.ExclusiveStartKey == nil {
		return r, err
	}
	start, err := r.table.key(Item(in.ExclusiveStartKey))
	if err != nil {
		err = invalid("The provided starting key is invalid: %s", errorOf(err).Message)
	}
	r.start = &start
	return r, err
}

func (w *World) query(in readInput) (any, error) {
	r, err := w.prepareRead(in)
	switch {
	case err != nil:
		return nil, err
	case in.Segment != nil || in.TotalSegments != nil:
		return nil, notModelled("a segment of a Query")
	case r.keys == nil:
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	pk, sk, err := r.table.keyCondition(r.keys)
	if err != nil {
		return nil, err
	}
	if name := r.filter.uses(r.table.attributes()); name != "" {
		return nil, invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
	}
	var keys []primaryKey
	for key := range r.table.items {
		if key.pk == pk && sk.holds(r.table.items[key]) {
			keys = append(keys, key)
		}
	}
	forward := in.ScanIndexForward == nil || *in.ScanIndexForward
	slices.SortFunc(keys, func(a, b primaryKey) int {
		if !forward {
			a, b = b, a
		}
		return strings.Compare(a.sk, b.sk)
	})
	if r.start != nil {
		if r.start.pk != pk {
			return nil, invalid("The provided starting key is outside query boundaries based on provided conditions")
		}
		keys = slices.DeleteFunc(keys, func(k primaryKey) bool {
			return forward && k.sk <= r.start.sk || !forward && k.sk >= r.start.sk
		})
	}
	return r.page(keys, in.Limit), nil
}

// keyCondition reads a condition of the form pk = :v, or pk = :v AND one on the sort
// key. It returns the partition key and the rest.
func (t *table) keyCondition(n *node) (pk string, rest *node, err error) {
	parts := []*node{n}
	if n.operator == "AND" {
		parts = n.operands
	}
	var equals *node
	for _, part := range parts {
		switch {
		case slices.Contains([]string{"OR", "NOT", "<>", "IN", "AND", "attribute_exists", "attribute_not_exists"}, part.operator):
			return "", nil, invalid("Invalid operator used in KeyConditionExpression: %s", part.operator)
		case part.operands[0].operator != "path" || len(part.operands[0].path) != 1:
			return "", nil, notModelled("a key condition of this form")
		case part.operands[0].path[0] == t.PK && part.operator != "=":
			return "", nil, invalid("Query key condition not supported")
		case part.operands[0].path[0] == t.PK && equals != nil, part.operands[0].path[0] == t.SK && rest != nil:
			return "", nil, invalid("KeyConditionExpressions must only contain one condition per key")
		case part.operands[0].path[0] == t.PK:
			equals = part
		case part.operands[0].path[0] == t.SK:
			rest = part
		}
		for _, o := range part.operands[1:] {
			if o.operator != "value" || typeOf(o.value.AttributeValue) != "S" {
				return "", nil, invalid("One or more parameter values were invalid: Condition parameter type does not match schema type")
			}
		}
	}
	switch {
	case equals == nil:
		return "", nil, invalid("Query condition missed key schema element: %s", t.PK)
	case len(parts) == 2 && rest == nil:
		return "", nil, invalid("Query key condition not supported")
	}
	return equals.operands[1].value.AttributeValue.(*types.AttributeValueMemberS).Value, rest, nil //nolint:errcheck,forcetypeassert // checked above
}

// uses returns the first of the attributes that a condition mentions.
func (n *node) uses(attributes []string) string {
	if n == nil {
		return ""
	}
	if n.operator == "path" && slices.Contains(attributes, n.path[0]) {
		return n.path[0]
	}
	for _, o := range n.operands {
		if name := o.uses(attributes); name != "" {
			return name
		}
	}
	return ""
}

func (w *World) scan(in readInput) (any, error) {
	r, err := w.prepareRead(in)
	switch {
	case err != nil:
		return nil, err
	case in.KeyConditionExpression != nil || in.ScanIndexForward != nil:
		return nil, notModelled("a Scan with members of a Query")
	case (in.Segment == nil) != (in.TotalSegments == nil):
		return nil, invalid("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	case in.Segment != nil && (*in.Segment < 0 || *in.Segment >= *in.TotalSegments):
		return nil, invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", *in.Segment, *in.TotalSegments)
	}
	keys := r.table.sorted()
	keys = slices.DeleteFunc(keys, func(k primaryKey) bool {
		if r.start != nil && cmp.Or(bytes.Compare(hashOf(k.pk), hashOf(r.start.pk)), strings.Compare(k.sk, r.start.sk)) <= 0 {
			return true
		}
		return in.Segment != nil && int(binary.BigEndian.Uint16(hashOf(k.pk)))**in.TotalSegments>>16 != *in.Segment
	})
	return r.page(keys, in.Limit), nil
}

// readUnit is how many bytes a strongly consistent read gets for a unit of capacity.
const readUnit = 4096

// page reads items until one of the limits is reached. DynamoDB then returns the key of
// the last item, even if no other follows. The filter comes after the limits.
func (r read) page(keys []primaryKey, limit *int) map[string]any {
	items, scanned, size := []wire{}, 0, 0
	out := map[string]any{}
	for _, key := range keys {
		item := r.table.items[key]
		scanned++
		size += sizeOf(item)
		if r.filter.holds(item) {
			items = append(items, wire(project(item, r.paths)))
		}
		if limit != nil && scanned == *limit || size > maxPage {
			out["LastEvaluatedKey"] = wire(r.table.keyIn(item))
			break
		}
	}
	out["Count"], out["ScannedCount"] = len(items), scanned
	if r.in.Select == "" {
		out["Items"] = items
	}
	if r.in.ReturnConsumedCapacity != "" {
		units := float64(max(1, (size+readUnit-1)/readUnit))
		if !r.in.ConsistentRead {
			units /= 2
		}
		out["ConsumedCapacity"] = map[string]any{"TableName": r.table.Name, "CapacityUnits": units}
	}
	return out
}

// errorOf returns the error as the model's.
func errorOf(err error) *Error {
	var known *Error
	errors.As(err, &known)
	return known
}
