"""Rows of clients of the network: of HTTP and ssh, copies to other machines, messages."""

from codeloop.shell.client_programs import (
    autossh_connects,
    copies_out,
    curl_sends,
    httpie_sends,
    rsync_copies_out,
    ssh_connects,
    wget_sends,
)
from codeloop.shell.program_readers import find_downloads, find_received_folder, find_wget_downloads
from codeloop.shell.program_row import ProgramRow, list_by_name

_ROWS = {
    """
apprise bolt cap fab mail mailx mina msmtp mutt neomutt nullmailer-inject pyinfra s-nail salt
salt-ssh sendemail sendmail slackcat smtp-cli ssmtp telegram-send twurl
""": ProgramRow(remote="**"),
    "autossh": ProgramRow(changes_remote=autossh_connects),
    "clush": ProgramRow(runs_by="-o --options -R --worker", remote="**"),
    "curl": ProgramRow(
        operands="f",
        options="""
-O!remote --remote-name!remote --remote-name-all!remote -J!sent --remote-header-name!sent -o=w
--output=w --output-dir=W -D=w --dump-header=w -c=w --cookie-jar=w --trace=w --trace-ascii=w
--stderr=w -K=r --config=r -T=r --upload-file=r -b=r --cookie=r -E=r --cert=r --key=r --cacert=r
--capath=n --netrc-file=r --libcurl=w --etag-save=w --etag-compare=r --hsts=b --alt-svc=b -d=@
--data=@ --data-ascii=@ --data-binary=@ --data-urlencode=@ --json=@ -F=@ --form=@ -H=@
--header=@ -w=@ --write-out=@ --url-query=@ --variable=@ --proxy-header=@ -X=- --request=- -A=-
-e=- -u=- -m=- -x=- --proxy=- -U=- --url=f --max-time=- --retry=- --connect-timeout=-
--resolve=- --user=- --user-agent=- --referer=- -r=- --range=- -C=- -y=- -Y=- -z=r -P=- -Q=-
-t=- --form-string=- --data-raw=- --connect-to=- --limit-rate=- --unix-socket=n
--abstract-unix-socket=- --interface=- --crlfile=r --pinnedpubkey=r --pubkey=r --dns-servers=-
--ciphers=- --cert-type=- --pass=- --proto=- --noproxy=- --retry-delay=- --retry-max-time=-
--max-redirs=- --max-filesize=- --oauth2-bearer=-
""",
        find_more_uses=find_downloads,
        changes_remote=curl_sends,
    ),
    "curlie": ProgramRow(changes_remote=curl_sends),
    "dsh": ProgramRow(runs_by="-r --remoteshell -o --remoteshellopt", remote="**"),
    "http https xh xhs": ProgramRow(changes_remote=httpie_sends),
    "mosh": ProgramRow(runs_words="command", changes_remote=ssh_connects),
    "mussh": ProgramRow(runs_by="-o -po", remote="**", has_short_help=False),
    "ntfy": ProgramRow(remote="pub,publish,send"),
    "openssl": ProgramRow(
        operands="-",
        options="""
-in=r -out=w -keyout=w -key=r -CAfile=r -inkey=r -certfile=r -config=r -passin=- -passout=-
-CA=r -CAkey=r
""",
    ),
    "parallel-nuke parallel-rsync parallel-scp parallel-ssh pnuke prsync pscp pssh": ProgramRow(
        runs_by="-O --option -x --extra-args -X --extra-arg -S --ssh-args",
        remote="**",
        has_short_help=False,
    ),
    "parallel-slurp pslurp": ProgramRow(
        runs_by="-O --option -x --extra-args -X --extra-arg -S --ssh-args"
    ),
    "pdcp pdsh": ProgramRow(runs_by="-R", remote="**"),
    "rclone": ProgramRow(
        remote="""
copy,copyto,move,moveto,sync,bisync,rcat ! --dry-run -n
delete,purge,deletefile,mkdir,rmdir ! --dry-run -n
"""
    ),
    "rpdcp": ProgramRow(runs_by="-R"),
    "rsync": ProgramRow(
        operands="R>W",
        options="""
-e=- --rsh=- --exclude=- --include=- -f=- --filter=- --exclude-from=r --include-from=r
--files-from=r --log-file=w --backup-dir=W --partial-dir=W -T=W --temp-dir=W --password-file=r
--link-dest=n --compare-dest=n --copy-dest=n --write-batch=w --only-write-batch=w --read-batch=r
--chmod=- --chown=- --bwlimit=- --timeout=- --port=- --rsync-path=- --max-size=- --min-size=-
--info=- --debug=- --out-format=- --suffix=- -B=- -M=- --usermap=- --groupmap=- --backup
--partial
""",
        find_more_uses=find_received_folder,
        runs_by="-e --rsh --rsync-path",
        changes_remote=rsync_copies_out,
    ),
    "scp": ProgramRow(
        operands="R>W",
        options="-i=r -F=r -P=- -l=- -o=- -S=- -J=- -c=- -D=-",
        find_more_uses=find_received_folder,
        runs_by="-S -o",
        changes_remote=copies_out,
    ),
    "sftp": ProgramRow(runs_by="-S -o", changes_remote=ssh_connects),
    "signal-cli": ProgramRow(remote="** send"),
    "slogin ssh-copy-id": ProgramRow(changes_remote=ssh_connects),
    "ssh": ProgramRow(runs_by="-o", changes_remote=ssh_connects),
    "ssh-keygen": ProgramRow(operands="-", options="-f=w -t=- -b=- -C=- -N=- -P=- -s=r -O=- -m=-"),
    "swaks": ProgramRow(remote="**", has_short_help=False),
    "toot": ProgramRow(remote="post,reply"),
    "wget": ProgramRow(
        operands="-",
        options="""
-O=w --output-document=w -P=W --directory-prefix=W -o=w --output-file=w -a=w --append-output=w
-i=r --input-file=r --post-file=r --body-file=r --load-cookies=r --save-cookies=w
--certificate=r --private-key=r --ca-certificate=r --config=r --warc-file=w --rejected-log=w
--hsts-file=b -U=- -t=- -T=- -l=- -A=- -R=- -D=- -e=- -I=- -X=- -w=- -Q=- -B=- --header=-
--post-data=- --user=- --password=- --method=- --body-data=- --tries=- --recursive!sent -r!sent
-m!sent --mirror!sent -p!sent --page-requisites!sent -x!sent --force-directories!sent
--content-disposition!sent --trust-server-names!sent --timeout=- --wait=- --user-agent=-
--cut-dirs=- --default-page=- --bind-address=- --limit-rate=- --referer=- --level=- --accept=-
--reject=- --domains=- --execute=-
""",
        find_more_uses=find_wget_downloads,
        runs_by="-e --execute --use-askpass",
        changes_remote=wget_sends,
    ),
}
PROGRAMS = list_by_name(_ROWS)
