package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"
)

// What S3 answers to a delete with If-Match: *, and what is left after it.
func TestConditionalDelete(t *testing.T) {
	for name, c := range map[string]struct {
		versioning        types.BucketVersioningStatus
		marker            bool
		versions, markers int
	}{
		"off":       {},
		"on":        {versioning: types.BucketVersioningStatusEnabled, marker: true, versions: 1, markers: 1},
		"suspended": {versioning: types.BucketVersioningStatusSuspended, marker: true, markers: 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := withBucket(t, c.versioning)
			if _, err := e.deleteIf(t.Context(), "files/w/absent"); codeOf(err) != "PreconditionFailed" {
				t.Errorf("an absent object: %v, want PreconditionFailed", err)
			}
			e.put(t, "files/w/f")
			out, err := e.deleteIf(t.Context(), "files/w/f")
			if err != nil {
				t.Fatalf("an existing object: %v", err)
			}
			if aws.ToBool(out.DeleteMarker) != c.marker || (out.VersionId != nil) != c.marker {
				t.Errorf("delete marker %v, version %v, want them: %t", out.DeleteMarker, out.VersionId, c.marker)
			}
			if e.exists(t, "files/w/f") {
				t.Error("the object is still there")
			}
			// The current version is a delete marker now, or there is none.
			if _, err := e.deleteIf(t.Context(), "files/w/f"); codeOf(err) != "PreconditionFailed" {
				t.Errorf("a deleted object: %v, want PreconditionFailed", err)
			}
			if versions, markers := e.stored(t, "files/w/f"); versions != c.versions || markers != c.markers {
				t.Errorf("%d versions and %d markers are left, want %d and %d", versions, markers, c.versions, c.markers)
			}
		})
	}
}

func TestOneOfManyConditionalDeletesWins(t *testing.T) {
	for name, versioning := range map[string]types.BucketVersioningStatus{
		"off": "", "on": types.BucketVersioningStatusEnabled, "suspended": types.BucketVersioningStatusSuspended,
	} {
		t.Run(name, func(t *testing.T) {
			e := withBucket(t, versioning)
			for range 5 {
				e.put(t, "files/w/f")
				got := atOnce(100, func() error { _, err := e.deleteIf(t.Context(), "files/w/f"); return err })
				if diff := cmp.Diff(got, map[string]int{"": 1, "PreconditionFailed": 99}); diff != "" {
					t.Errorf("answers (got -, want +):\n%s", diff)
				}
			}
		})
	}
}

// Only the object's absence fails the condition: other errors stay themselves.
func TestConditionalDeleteWithoutABucket(t *testing.T) {
	e := start(t, t.TempDir())
	if _, err := e.deleteIf(t.Context(), "files/w/f"); codeOf(err) != "NoSuchBucket" {
		t.Errorf("%v, want NoSuchBucket", err)
	}
}

func TestUnconditionalDeleteOfNothingSucceeds(t *testing.T) {
	e := withBucket(t, "")
	if _, err := e.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String("none")}); err != nil {
		t.Error(err)
	}
}

// Versions are deleted by id, bytes before markers; to do so twice is no error.
func TestDeleteByVersion(t *testing.T) {
	e := withBucket(t, types.BucketVersioningStatusEnabled)
	const key = "files/w/f"
	first, second := e.put(t, key), e.put(t, key)
	other := e.put(t, key+"0") // its name begins with the key
	out, err := e.deleteIf(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{first, first, second, second, aws.ToString(out.VersionId), aws.ToString(out.VersionId)} {
		if err := e.deleteVersion(t.Context(), key, version); err != nil {
			t.Errorf("version %s: %v", version, err)
		}
		if e.exists(t, key) {
			t.Errorf("an older version is there again after the deletion of %s", version)
		}
	}
	if err := e.deleteVersion(t.Context(), key+"0", "no-version"); codeOf(err) != "InvalidArgument" {
		t.Errorf("a malformed version: %v, want InvalidArgument", err)
	}
	// What is left is the other key's.
	if versions, markers := e.stored(t, key); versions != 1 || markers != 0 {
		t.Errorf("%d versions and %d markers are left", versions, markers)
	}
	if err := e.deleteVersion(t.Context(), key+"0", other); err != nil {
		t.Error(err)
	}
}

// The version that becomes the current one is whole.
func TestDeletingAMarkerBringsTheObjectBack(t *testing.T) {
	e := withBucket(t, types.BucketVersioningStatusEnabled)
	e.put(t, "f")
	out, err := e.deleteIf(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.deleteVersion(t.Context(), "f", aws.ToString(out.VersionId)); err != nil {
		t.Fatal(err)
	}
	if !e.exists(t, "f") {
		t.Error("the object is not back")
	}
}

// Several callers may delete the same versions at once. The marker stays, so that
// the key is there for all of them.
func TestDeleteObjectsAtOnce(t *testing.T) {
	e := withBucket(t, types.BucketVersioningStatusEnabled)
	var versions []types.ObjectIdentifier
	for range 5 {
		versions = append(versions, types.ObjectIdentifier{Key: aws.String("f"), VersionId: aws.String(e.put(t, "f"))})
	}
	if _, err := e.deleteIf(t.Context(), "f"); err != nil {
		t.Fatal(err)
	}
	got := atOnce(20, func() error {
		out, err := e.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String(bucket), Delete: &types.Delete{Objects: versions}})
		if err == nil && (len(out.Errors) > 0 || len(out.Deleted) != len(versions)) {
			t.Errorf("%d deleted, %d errors", len(out.Deleted), len(out.Errors))
		}
		return err
	})
	if diff := cmp.Diff(got, map[string]int{"": 20}); diff != "" {
		t.Errorf("answers (got -, want +):\n%s", diff)
	}
	if versions, markers := e.stored(t, "f"); versions != 0 || markers != 1 {
		t.Errorf("%d versions and %d markers are left", versions, markers)
	}
}

// A delete of several says for each what it was, and which could not be.
func TestDeleteObjectsTellsOfEach(t *testing.T) {
	e := withBucket(t, types.BucketVersioningStatusEnabled)
	version := e.put(t, "f")
	marker, err := e.deleteIf(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String(bucket), Delete: &types.Delete{Objects: []types.ObjectIdentifier{
		{Key: aws.String("f"), VersionId: &version},
		{Key: aws.String("f"), VersionId: aws.String("no-version")},
		{Key: aws.String("f"), VersionId: marker.VersionId},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Deleted) != 2 || aws.ToBool(out.Deleted[0].DeleteMarker) || !aws.ToBool(out.Deleted[1].DeleteMarker) {
		t.Errorf("deleted: %+v", out.Deleted)
	}
	if len(out.Errors) != 1 || aws.ToString(out.Errors[0].Code) != "InvalidArgument" {
		t.Errorf("errors: %+v", out.Errors)
	}
}
