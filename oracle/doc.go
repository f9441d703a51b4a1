// Package oracle is a module of its own that ships nothing. It reads what the
// model families send and receive with the vendors' own libraries: the streams
// in testdata must come to the same texts, calls and token counts there, and the
// requests must be made of fields that those libraries know. What lies in
// testdata is kept true by the main module's tests (internal/model/modeltest,
// oracle.go); nothing here is imported by the product.
package oracle
