// Package backend defines what package mapstore and its three stores share: a version of the map's document, and the
// errors that say whether a change was made.
//
// It is a leaf: it knows neither maps nor stores.
package backend
