-- A user lives on the shard that the user's number picks: number % shards.
create table users (
  id bigint primary key,
  name text not null,
  created_at timestamptz not null default now()
);

---- create above / drop below ----

drop table users;
