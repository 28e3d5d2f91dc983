// Package dsn reads and changes connection strings of Postgres, with the grammar of libpq and pgx: a URL, such as
// postgres://app@10.0.0.1:5432/app?sslmode=verify-full, or keywords and values, such as
//
//	host=10.0.0.1 dbname = 'app' sslmode=verify-full
//
// Both forms become one ordered list of settings. What a DSN leaves out, the environment, a service file or a default
// decides; this package reads none of them.
//
// Variables, ${NAME}, are plain text here. [Parse] also accepts one in the place of whole keywords and values.
package dsn
