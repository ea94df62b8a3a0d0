#!/bin/sh
# Says what `causeway bench --driven` and `causeway lab drive` would say, for tests of the API.
second='{"second":{"second":1,"phase":"measuring","elapsed":1.0,"whole":12.0,"iops":5.0,"read_iops":5.0,"write_iops":0.0,"bytes_per_second":20480.0,"errors":0,"p50_us":7.0,"p99_us":9.0,"max_us":9.5,"paths":[{"path":"eth0 > 10.77.0.101:3260","from":"10.77.0.1","portal":"10.77.0.101:3260","state":"active","iops":5.0,"bytes_per_second":20480.0,"retransmits":0}]}}'
side='{"ios":5,"bytes":20480,"iops":5.0,"bytes_per_second":20480.0,"latency_us":{"mean":7.0,"p50":7.0,"p99":9.0,"p999":9.0,"max":9.5}}'
case "$1" in
bench)
    printf '%s\n' "$second"
    # A run of 600 seconds goes on until it is ended.
    case "$*" in *-d600*) cat > /dev/null ;; esac
    printf '{"done":{"result":{"command_line":"c","read":%s,"write":{},"total":%s,"errors":0},"csv":"ms\\n","svg":"<svg/>","text":"t\\n"}}\n' "$side" "$side"
    ;;
lab)
    printf '{"built":{"namespaces":["n-host"],"plan":{"machines":[],"switches":[],"links":[{"id":"eth0","machine":"host","port":"eth0","switch":"br0"}]},"load":"causeway bench"}}\n'
    printf '%s\n' "$second"
    while read -r order; do
        printf '{"link":%s}\n' "$order"
    done
    ;;
esac
