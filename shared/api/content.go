package api

import (
	"mime"
	"strings"
)

// bodyHeaderIssues judges what the request says of its body: one Content-Type,
// application/json in UTF-8, and no Content-Encoding but identity.
func bodyHeaderIssues(r *Request) []Issue {
	var issues []Issue
	if !isJSON(r.Header("Content-Type")) {
		issues = append(issues, Issue{Message: "Content-Type must be application/json, sent once, its charset (if any) utf-8"})
	}
	for _, encoding := range r.Header("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(encoding), "identity") {
			issues = append(issues, Issue{Message: "Content-Encoding must be identity or absent"})
			break
		}
	}
	return issues
}

func isJSON(contentTypes []string) bool {
	if len(contentTypes) != 1 {
		return false
	}
	media, parameters, err := mime.ParseMediaType(contentTypes[0])
	if err != nil || media != "application/json" {
		return false
	}
	charset, given := parameters["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}
