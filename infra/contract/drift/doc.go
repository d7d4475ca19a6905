// Package drift holds template, description, code and Makefile against each
// other: what one of them says twice, or two of them say once each. It starts
// nothing. What only shows while the service runs is infra/contract's, the
// operator's command's outputs are infra/admin's, the policies infra/lint's.
package drift
