-- A user's row is in the shard that the directory gave to the user's name, and so are photos and friends. The ID is made
-- there: it names the shard, so that nobody who has the ID asks the directory.
create table users (
  id bigint primary key default next_id(),
  name text not null unique,
  request_key text not null -- of the request that signed up, which its sender may repeat
);

---- create above / drop below ----

drop table users;
