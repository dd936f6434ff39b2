# A throw-away PostgreSQL. Sourced by tests/run and benches/run, which bring `die` and the folder
# $work; leaves $postgres_url, and $cluster for stop_postgres.

# Debian keeps the server's programs out of PATH, one folder a version; the newest wins.
server_programs() {
    local found=(/usr/lib/postgresql/*/bin/initdb)
    [[ -x ${found[-1]} ]] || return 1
    printf '%s\n' "${found[@]%/initdb}" | sort -V | tail -n 1
}

# start_postgres FOLDER [LINE..]: in a folder of its own there; LINEs are added to its configuration.
start_postgres() {
    local port password in=$1
    shift
    server=$(server_programs) || die "PostgreSQL's server programs are not under /usr/lib/postgresql"
    # Not under target/: the server refuses to run as root, its own account often may not enter a
    # checkout, and a socket's path is limited to some hundred bytes.
    cluster=$(mktemp -d "$in/dlo-postgres.XXXXXX")
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    echo "$password" >"$cluster/password"
    if ((EUID == 0)); then
        # From /, since its account may not stand in this folder either.
        as_postgres=(runuser -u postgres -- env -C /)
        chown -R postgres: "$cluster"
    fi
    # Not scram-sha-256: its thousands of rounds, on both sides of thousands of connections, are an eighth
    # of what all tests take, and this password is for minutes and loopback.
    "${as_postgres[@]}" "$server/initdb" -D "$cluster/data" -U postgres -E UTF8 --locale=C --no-sync \
        -A md5 --pwfile "$cluster/password" >"$work/initdb" 2>&1 || {
        cat "$work/initdb"
        die "initdb failed"
    }
    {
        echo "listen_addresses = '127.0.0.1'"
        echo "unix_socket_directories = '$cluster'"
        printf '%s\n' "$@"
    } >>"$cluster/data/postgresql.conf"
    # Ports are taken below the range from which the kernel serves programs that ask for any.
    for _ in {1..20}; do
        port=$((20000 + RANDOM % 10000))
        if "${as_postgres[@]}" "$server/pg_ctl" -D "$cluster/data" -o "-p $port" -l "$cluster/log" -w start \
            </dev/null >"$work/start" 2>&1; then
            postgres_url="postgres://postgres:$password@127.0.0.1:$port/postgres"
            return
        fi
        grep -q 'could not bind\|could not create any TCP/IP sockets' "$cluster/log" || break
    done
    cat "$work/start" "$cluster/log"
    die "PostgreSQL did not start"
}

stop_postgres() {
    [[ -n $cluster ]] || return 0
    "${as_postgres[@]}" "$server/pg_ctl" -D "$cluster/data" -m immediate stop >"$work/stop" 2>&1 || cat "$work/stop"
    rm -rf "$cluster"
}
