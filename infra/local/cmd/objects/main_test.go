package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// The longest file id of the contract fits in a file name.
func TestLongestKey(t *testing.T) {
	e := withBucket(t, "")
	key := "files/00000000-0000-4000-8000-000000000000/file_" + strings.Repeat("x", 200)
	e.put(t, key)
	out, err := e.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Body.Close() }()
	if content, err := io.ReadAll(out.Body); err != nil || string(content) != key {
		t.Errorf("%q, %v", content, err)
	}
	if _, err := e.deleteIf(t.Context(), key); err != nil {
		t.Error(err)
	}
}

// What was acknowledged before a kill -9 is there after it, whole, and what was
// deleted is not.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	e := start(t, dir)
	if _, err := e.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		t.Fatal(err)
	}
	stored, deleted := make(chan string, 1000), make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		writeUntilItEnds(t.Context(), e, stored, deleted)
	}()
	for range 50 {
		<-deleted
	}
	e.kill()
	<-ended
	close(stored)
	close(deleted)
	again := start(t, dir)
	for key := range stored {
		if !again.exists(t, key) {
			t.Errorf("%s is lost", key)
		}
	}
	for key := range deleted {
		if again.exists(t, key) {
			t.Errorf("%s is back", key)
		}
	}
}

// writeUntilItEnds stores two objects, deletes one of them, and so on, and tells
// what was acknowledged.
func writeUntilItEnds(ctx context.Context, e *engine, stored, deleted chan<- string) {
	for i := range cap(stored) {
		keep, remove := fmt.Sprintf("files/%d/keep", i), fmt.Sprintf("files/%d/remove", i)
		for _, key := range []string{keep, remove} {
			if _, err := e.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(bucket), Key: &key, Body: strings.NewReader(key)}); err != nil {
				return
			}
		}
		stored <- keep
		if _, err := e.deleteIf(ctx, remove); err != nil {
			return
		}
		deleted <- remove
	}
}
