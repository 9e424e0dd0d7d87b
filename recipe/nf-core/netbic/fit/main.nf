process NETBIC_FIT {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    container "${ workflow.containerEngine == 'singularity' && !task.ext.singularity_pull_docker_container ?
        'https://depot.galaxyproject.org/singularity/netbic:0.2.0--pyhdfd78af_0' :
        'biocontainers/netbic:0.2.0--pyhdfd78af_0' }"

    input:
    tuple val(meta), path(expression), path(sample_info)
    tuple val(meta2), path(gene_sets)
    tuple val(meta3), path(network)

    output:
    tuple val(meta), path("${prefix}")              , emit: folder
    tuple val(meta), path("${prefix}/modules.tsv")  , emit: modules
    tuple val(meta), path("${prefix}/summary.tsv")  , emit: summary
    tuple val(meta), path("${prefix}/samples.tsv")  , emit: samples
    tuple val(meta), path("${prefix}/report.html")  , emit: report, optional: true
    path "versions.yml"                             , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args   = task.ext.args ?: ''
    def labels = sample_info ? "--sample-info ${sample_info}" : ''
    def sets   = gene_sets ? "--gene-sets ${gene_sets}" : ''
    def graph  = network ? "--graph ${network}" : ''
    prefix     = task.ext.prefix ?: "${meta.id}"
    """
    netbic fit ${expression} \\
        ${labels} \\
        ${sets} \\
        ${graph} \\
        --jobs ${task.cpus} \\
        --out ${prefix} \\
        ${args}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        netbic: \$(netbic --version | sed 's/.*version //')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    mkdir ${prefix}
    touch ${prefix}/modules.tsv ${prefix}/summary.tsv ${prefix}/samples.tsv ${prefix}/report.html

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        netbic: \$(netbic --version | sed 's/.*version //')
    END_VERSIONS
    """
}
