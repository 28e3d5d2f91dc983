-- What the next release will need. The one that runs does not know of it: it names its columns.
alter table photos add column place text;

---- create above / drop below ----

alter table photos drop column place;
