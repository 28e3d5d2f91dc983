// Package texts keeps what a router knows of the SQL texts that it was given: what their words tell, and how long the
// server took for them so far. It decides what is fast. What is safe does not depend on it: a statement that is sent as a
// read is held to reading by the server.
package texts
