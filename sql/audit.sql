-- The audit lines of this host: one for each command of kiloshard that runs SQL of users, grants rights, changes the map, moves
-- shards or advances sequences. note_command adds one. Roles other than the owner have no rights on the table or the function.
CREATE TABLE IF NOT EXISTS kiloshard.audit (
  entry   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      timestamp with time zone NOT NULL, -- by this server's clock
  role    name NOT NULL, -- that logged in
  address inet, -- of the client, or of its pooler; null for a Unix socket
  command text NOT NULL, -- with its arguments, but for passwords, keys and the values in SQL
  who     text NOT NULL, -- user@machine, as the client says
  release text NOT NULL -- of kiloshard, as the client says
);

-- note_command adds the line of a command. It runs with the owner's rights, so the owner can let other roles call it.
CREATE OR REPLACE FUNCTION kiloshard.note_command(command text, who text, release text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $kiloshard$
BEGIN
  INSERT INTO kiloshard.audit (at, role, address, command, who, release)
    VALUES (clock_timestamp(), session_user, inet_client_addr(), left(command, 4096), left(who, 4096), left(release, 4096));
END
$kiloshard$;
REVOKE EXECUTE ON FUNCTION kiloshard.note_command(text, text, text) FROM PUBLIC;
