package template

import "fmt"

// Table is one AWS::DynamoDB::Table.
type Table struct {
	// ID is the logical id.
	ID         string
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
	// Versioning is Enabled, Suspended or empty.
	Versioning string
}

// Tables returns the declared tables.
func (t *Template) Tables() ([]Table, error) {
	return declared(t, "AWS::DynamoDB::Table", func(r resource, table *Table) error {
		table.ID = r.id
		var ttl struct {
			Attribute string `yaml:"AttributeName"`
			Enabled   bool   `yaml:"Enabled"`
		}
		err := t.scope.decode(r.properties, fields{
			"AttributeDefinitions":    &table.Attributes,
			"KeySchema":               &table.Keys,
			"TimeToLiveSpecification": &ttl,
		})
		if ttl.Enabled {
			table.TTL = ttl.Attribute
		}
		return err
	})
}

// Buckets returns the declared buckets.
func (t *Template) Buckets() ([]Bucket, error) {
	return declared(t, "AWS::S3::Bucket", func(r resource, bucket *Bucket) error {
		bucket.ID = r.id
		var versioning struct {
			Status string `yaml:"Status"`
		}
		err := t.scope.decode(r.properties, fields{"VersioningConfiguration": &versioning})
		bucket.Versioning = versioning.Status
		return err
	})
}

// Keys returns the logical ids of the declared KMS keys.
func (t *Template) Keys() ([]string, error) {
	return declared(t, "AWS::KMS::Key", func(r resource, id *string) error {
		*id = r.id
		return nil
	})
}

// declared reads all resources of one type.
func declared[T any](t *Template, kind string, read func(resource, *T) error) ([]T, error) {
	resources, err := t.resources(kind)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(resources))
	for i, r := range resources {
		if err := read(r, &all[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", r.id, err)
		}
	}
	return all, nil
}
