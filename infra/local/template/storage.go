package template

import "fmt"

// Table is one AWS::DynamoDB::Table.
type Table struct {
	// ID is the logical id.
	ID string
	// Name is the declared name, or empty.
	Name       string
	Attributes []TableAttribute
	Keys       []TableKey
	// TTL is the attribute that says when an item expires, or empty.
	TTL string
}

// TableAttribute is a key attribute and its type: S, N or B.
type TableAttribute struct {
	Name string `yaml:"AttributeName"`
	Type string `yaml:"AttributeType"`
}

// TableKey is one part of the primary key: HASH or RANGE.
type TableKey struct {
	Name string `yaml:"AttributeName"`
	Kind string `yaml:"KeyType"`
}

// Bucket is one AWS::S3::Bucket.
type Bucket struct {
	// ID is the logical id.
	ID string
	// Name is the declared name, or empty.
	Name string
	// Versioning is Enabled, Suspended or empty.
	Versioning string
}

// Key is one AWS::KMS::Key.
type Key struct {
	// ID is the logical id.
	ID          string
	Description string
}

// Tables are the declared tables.
func (t *Template) Tables() ([]Table, error) {
	declared, err := t.resources("AWS::DynamoDB::Table")
	if err != nil {
		return nil, err
	}
	var tables []Table
	for _, r := range declared {
		table := Table{ID: r.id}
		var ttl struct {
			Attribute string `yaml:"AttributeName"`
			Enabled   bool   `yaml:"Enabled"`
		}
		err := t.scope.decode(r.properties, fields{
			"TableName":               &table.Name,
			"AttributeDefinitions":    &table.Attributes,
			"KeySchema":               &table.Keys,
			"TimeToLiveSpecification": &ttl,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.id, err)
		}
		if ttl.Enabled {
			table.TTL = ttl.Attribute
		}
		tables = append(tables, table)
	}
	return tables, nil
}

// Buckets are the declared buckets.
func (t *Template) Buckets() ([]Bucket, error) {
	declared, err := t.resources("AWS::S3::Bucket")
	if err != nil {
		return nil, err
	}
	var buckets []Bucket
	for _, r := range declared {
		bucket := Bucket{ID: r.id}
		var versioning struct {
			Status string `yaml:"Status"`
		}
		err := t.scope.decode(r.properties, fields{"BucketName": &bucket.Name, "VersioningConfiguration": &versioning})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.id, err)
		}
		bucket.Versioning = versioning.Status
		buckets = append(buckets, bucket)
	}
	return buckets, nil
}

// Keys are the declared KMS keys.
func (t *Template) Keys() ([]Key, error) {
	declared, err := t.resources("AWS::KMS::Key")
	if err != nil {
		return nil, err
	}
	var keys []Key
	for _, r := range declared {
		key := Key{ID: r.id}
		if err := t.scope.decode(r.properties, fields{"Description": &key.Description}); err != nil {
			return nil, fmt.Errorf("%s: %w", r.id, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
